//! What people are asked in a form that opens over the message: until when, or why never. Pure.
//!
//! Limits kept: <https://docs.slack.dev/reference/views/modal-views>.

use serde::{Deserialize, Serialize};
use slack_morphism::prelude::{
    SlackBlock, SlackBlockDateTimePickerElement, SlackBlockMarkDownText, SlackBlockPlainTextInputElement,
    SlackBlockPlainTextOnly, SlackBlockText, SlackInputBlock, SlackInputBlockElement, SlackModalView,
    SlackSectionBlock, SlackView, SlackViewState, SlackViewStateValue,
};

use super::{
    reply::Reply,
    said::{Form, Said},
};
use crate::text::{clean, fit};

/// Longest reason, in characters.
const REASON_LIMIT: usize = 300;
const UNTIL: &str = "until";
const NEVER: &str = "never";

/// What a form is about; it comes back with what was filled in. Slack shows it to nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// The plan's content hash.
    pub(super) plan: String,
    /// Where the message stands that it was opened from.
    pub(super) channel: String,
    /// Where whoever opened it is answered, if they alone see that message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reply: Option<Reply>,
}

/// A form as Slack takes it.
pub(super) fn render(form: Form, about: &About) -> SlackView {
    let (callback, block, text): (_, SlackInputBlock, _) = match form {
        Form::Until => (UNTIL, until(), "Nobody is asked about it, or told of it, until then."),
        Form::Never => (
            NEVER,
            because(),
            "Nobody is asked about it, or told of it, any more, until somebody lifts it (`sweeper exemptions lift`).",
        ),
    };
    let text = SlackSectionBlock::new()
        .with_text(SlackBlockText::MarkDown(SlackBlockMarkDownText::new(text.to_owned()).with_verbatim(true)));
    let blocks: Vec<SlackBlock> = vec![text.into(), block.into()];
    let about = serde_json::to_string(about).unwrap_or_default();
    SlackView::Modal(
        SlackModalView::new(plain("Leave it alone"), blocks)
            .with_submit(plain("Leave it alone"))
            .with_close(plain("Cancel"))
            .with_callback_id(callback.into())
            .with_private_metadata(about),
    )
}

fn until() -> SlackInputBlock {
    let picker = SlackBlockDateTimePickerElement::new().with_action_id(UNTIL.into());
    input(UNTIL, "Until when?", picker.into())
}

fn because() -> SlackInputBlock {
    let text = SlackBlockPlainTextInputElement::new()
        .with_action_id(NEVER.into())
        .with_min_length(1)
        .with_max_length(REASON_LIMIT as u64);
    input(NEVER, "Why? Everybody who is asked about it sees this.", text.into())
}

fn input(block: &str, label: &str, element: SlackInputBlockElement) -> SlackInputBlock {
    SlackInputBlock::new(plain(label), element).with_block_id(block.into())
}

/// What a form that was filled in says, and what it is about; none if it is no form of ours, or nothing was filled in.
pub(super) fn filled_in(view: &SlackView, state: Option<&SlackViewState>) -> Option<(About, Said)> {
    let SlackView::Modal(modal) = view else { return None };
    let about = serde_json::from_str(modal.private_metadata.as_deref()?).ok()?;
    let value = |name: &str| -> Option<&SlackViewStateValue> { state?.values.get(&name.into())?.get(&name.into()) };
    let said = match modal.callback_id.as_ref()?.0.as_str() {
        UNTIL => {
            let at = value(UNTIL)?.selected_date_time.as_ref()?;
            Said::Until(at.0)
        }
        NEVER => {
            let because = fit(&clean(value(NEVER)?.value.as_deref()?), REASON_LIMIT);
            Said::Never { because: Some(because).filter(|because| !because.is_empty())? }
        }
        _ => return None,
    };
    Some((about, said))
}

fn plain(text: &str) -> SlackBlockPlainTextOnly {
    SlackBlockPlainTextOnly::from(text.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn about() -> About {
        About { plan: "5d".repeat(32), channel: "C0LAB".to_owned(), reply: None }
    }

    fn filled(form: Form, value: Value) -> Option<(About, Said)> {
        let name = match form {
            Form::Until => UNTIL,
            Form::Never => NEVER,
        };
        let state = json!({ "values": { name: { name: value } } });
        filled_in(&render(form, &about()), Some(&serde_json::from_value(state).unwrap()))
    }

    #[test]
    fn a_form_comes_back_with_what_it_is_about() {
        let until = filled(Form::Until, json!({ "type": "datetimepicker", "selected_date_time": 1_790_000_000 }));
        assert_eq!(until, Some((about(), Said::Until(Timestamp::from_second(1_790_000_000).unwrap()))));
        let never =
            filled(Form::Never, json!({ "type": "plain_text_input", "value": " the\nlicence\u{202E} server " }));
        assert_eq!(never, Some((about(), Said::Never { because: "the licence server".to_owned() })));
    }

    #[test]
    fn a_form_in_which_nothing_was_filled_in_says_nothing() {
        for value in [json!(null), json!(""), json!(" \n ")] {
            assert_eq!(filled(Form::Never, json!({ "type": "plain_text_input", "value": value })), None, "{value}");
        }
        assert_eq!(filled(Form::Until, json!({ "type": "datetimepicker", "selected_date_time": null })), None);
        assert_eq!(filled_in(&render(Form::Never, &about()), None), None);
    }
}
