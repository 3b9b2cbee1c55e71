//! What people are asked by buttons. Pure.
//!
//! A yes asks once more before it counts, because a thumb slips; what leaves a machine alone needs no second question. Limits kept: <https://docs.slack.dev/reference/block-kit/composition-objects/confirmation-dialog-object>.

use slack_morphism::prelude::{
    SlackActionBlockElement, SlackActionsBlock, SlackBlockButtonElement, SlackBlockButtonStyle, SlackBlockChoiceItem,
    SlackBlockConfirmItem, SlackBlockPlainTextOnly, SlackBlockStaticSelectElement,
};

use model::plan::ContentHash;

use super::{
    delay::Delay,
    pressed::{APPROVE, NEVER, NOT_NOW, OTHER, PROOF},
};
use crate::{message::Ask, text::fit};

/// Longest text of the second question.
const TEXT_LIMIT: usize = 300;

/// Longest of what a yes would do, in it.
const SUMMARY_LIMIT: usize = 200;

/// Yes to a plan, which `summary` puts into words, if anybody may say so; not now, and never; and what shows the evidence of its finding.
pub(super) fn of(ask: &Ask, summary: &str, finding: &str) -> SlackActionsBlock {
    let again = "It is looked at once more before, and left alone if anybody uses it.";
    let text = fit(summary, SUMMARY_LIMIT.min(TEXT_LIMIT - again.len() - 1));
    let yes = button(APPROVE, &ask.label, &ask.plan).with_style(SlackBlockButtonStyle::Danger).with_confirm(confirm(
        "Are you sure?",
        &format!("{text} {again}"),
        &ask.label,
    ));
    let never = button(NEVER, "Never", &ask.plan);
    let mut elements: Vec<SlackActionBlockElement> = match ask.nobody_may {
        Some(_) => Vec::new(),
        None => vec![yes.into()],
    };
    elements.extend([not_now(&ask.plan).into(), never.into()]);
    // Slack takes no button without a value.
    if !finding.is_empty() {
        elements.push(shows(finding).into());
    }
    SlackActionsBlock::new(elements)
}

/// What shows the evidence of a finding alone.
pub(super) fn proof(finding: &str) -> SlackActionsBlock {
    SlackActionsBlock::new(vec![shows(finding).into()])
}

fn shows(finding: &str) -> SlackBlockButtonElement {
    SlackBlockButtonElement::new(plain("Show proof")).with_action_id(PROOF.into()).with_value(finding.to_owned())
}

fn not_now(plan: &ContentHash) -> SlackBlockStaticSelectElement {
    let delays = Delay::ALL.map(|delay| (delay.label(), delay.as_str())).into_iter();
    let option = |(label, word)| SlackBlockChoiceItem::new(plain(label), format!("{word}:{plan}"));
    let options = delays.chain([("Another time …", OTHER)]).map(option).collect();
    SlackBlockStaticSelectElement::new()
        .with_action_id(NOT_NOW.into())
        .with_placeholder(plain("Not now"))
        .with_options(options)
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
