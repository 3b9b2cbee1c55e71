//! What people are asked by buttons. Pure.
//!
//! Each asks once more before it counts, because a thumb slips. Limits kept: <https://docs.slack.dev/reference/block-kit/composition-objects/confirmation-dialog-object>.

use slack_morphism::prelude::{
    SlackActionBlockElement, SlackActionsBlock, SlackBlockButtonElement, SlackBlockButtonStyle, SlackBlockConfirmItem,
    SlackBlockPlainTextOnly,
};

use model::plan::ContentHash;

use super::pressed::{APPROVE, DENY};
use crate::{message::Ask, text::fit};

/// Longest text of the second question.
const TEXT_LIMIT: usize = 300;

/// Yes and no to a plan, which `summary` puts into words.
pub(super) fn of(ask: &Ask, summary: &str) -> SlackActionsBlock {
    let again = "It is looked at once more before, and left alone if anybody works on it.";
    let text = fit(summary, TEXT_LIMIT - again.len() - 1);
    let yes = button(APPROVE, &ask.label, &ask.plan).with_style(SlackBlockButtonStyle::Danger).with_confirm(confirm(
        "Are you sure?",
        &format!("{text} {again}"),
        &ask.label,
    ));
    let no = "Nobody can approve this plan any more. The finding stays.";
    let no = button(DENY, "No", &ask.plan).with_confirm(confirm("Say no to this plan?", no, "Say no"));
    SlackActionsBlock::new(vec![SlackActionBlockElement::from(yes), SlackActionBlockElement::from(no)])
}

fn button(action: &str, label: &str, plan: &ContentHash) -> SlackBlockButtonElement {
    SlackBlockButtonElement::new(plain(label)).with_action_id(action.into()).with_value(plan.to_string())
}

fn confirm(title: &str, text: &str, label: &str) -> SlackBlockConfirmItem {
    SlackBlockConfirmItem::new(plain(title), plain(text).into(), plain(label), plain("Cancel"))
}

fn plain(text: &str) -> SlackBlockPlainTextOnly {
    SlackBlockPlainTextOnly::from(text.to_owned())
}
