//! A finding in Block Kit: heading, facts, evidence, proposal, where to look. Pure.
//!
//! Untrusted text stands in `rich_text` and `plain_text` where possible, because both are literal;
//! in mrkdwn it is escaped, and `verbatim` keeps Slack from making links and mentions of it.
//! Limits kept, each from <https://docs.slack.dev/reference/block-kit/blocks>: 50 blocks, header
//! 150 characters, section text 3,000, at most 10 fields of 2,000, context elements 10.

use std::collections::HashMap;

use slack_morphism::prelude::{
    SlackBlock, SlackBlockMarkDownText, SlackBlockPlainTextOnly, SlackBlockText, SlackContextBlock,
    SlackContextBlockElement, SlackHeaderBlock, SlackMessageContent, SlackMessageMetadata, SlackRichTextBlock,
    SlackRichTextElement, SlackRichTextList, SlackRichTextListStyle, SlackRichTextSection, SlackRichTextStyle,
    SlackRichTextText, SlackSectionBlock,
};

use crate::{
    message::{FindingNotice, Severity, Value, View, view_of},
    text::{clean, fit, mrkdwn},
};

const HEADER_LIMIT: usize = 150;
const SECTION_LIMIT: usize = 3_000;
const FIELD_LIMIT: usize = 2_000;
/// Slack takes 40,000 and recommends 4,000; this is what a phone's lock screen shows of it.
const TEXT_LIMIT: usize = 1_000;
const METADATA_LIMIT: usize = 256;

/// The whole message. The metadata names the idempotency key, so a repetition is recognisable.
pub(super) fn render(notice: &FindingNotice, idempotency_key: &str) -> SlackMessageContent {
    let view = view_of(notice);
    SlackMessageContent::new()
        .with_text(fallback(&view))
        .with_blocks(blocks(&view))
        .with_metadata(metadata(&view, idempotency_key))
}

fn blocks(view: &View) -> Vec<SlackBlock> {
    let heading = format!("{} {}", emoji(view.severity), view.headline);
    let heading = SlackBlockPlainTextOnly::from(fit(&heading, HEADER_LIMIT));
    let mut blocks: Vec<SlackBlock> = vec![SlackHeaderBlock::new(heading).into()];
    let fields = view.facts.iter().map(|fact| field(fact.label, &fact.value));
    blocks.push(SlackSectionBlock::new().with_fields(fields.collect()).into());
    if let Some(reasons) = reasons(view) {
        blocks.push(reasons.into());
    }
    if let Some(proposal) = proposal(view) {
        blocks.push(proposal.into());
    }
    blocks.push(header(view).into());
    blocks.push(footer(view).into());
    blocks
}

fn field(label: &str, value: &Value) -> SlackBlockText {
    let value = match value {
        Value::Line(text) => mrkdwn(text, FIELD_LIMIT - 100),
        // Slack shows it in its reader's time zone.
        Value::Since { at, lasted } => format!(
            "<!date^{}^{{date_short_pretty}} at {{time}}|{}> ({lasted})",
            at.as_second(),
            at.strftime("%Y-%m-%d %H:%M UTC"),
        ),
    };
    SlackBlockText::MarkDown(verbatim(format!("*{label}*\n{value}")))
}

/// Why we say so, as literal text.
fn reasons(view: &View) -> Option<SlackRichTextBlock> {
    if view.certainty.is_none() && view.evidence.is_empty() {
        return None;
    }
    let mut lead = vec![bold("Why we say so").into()];
    if let Some(certainty) = &view.certainty {
        lead.push(SlackRichTextText::new(format!("\n{certainty}")).into());
    }
    let mut elements: Vec<SlackRichTextElement> = vec![SlackRichTextSection::new(lead).into()];
    elements.extend(bullets(&view.evidence, view.evidence_left_out));
    Some(SlackRichTextBlock::new(elements))
}

/// What could be done, and what would be billed all the same.
fn proposal(view: &View) -> Option<SlackRichTextBlock> {
    let proposal = view.proposal.as_ref()?;
    let mut lead = vec![bold("What could be done").into(), SlackRichTextText::new(format!("\n{proposal}")).into()];
    if !view.keeps_billing.is_empty() {
        lead.push(SlackRichTextText::new("\nStill billed after that:".to_owned()).into());
    }
    let mut elements: Vec<SlackRichTextElement> = vec![SlackRichTextSection::new(lead).into()];
    elements.extend(bullets(&view.keeps_billing, 0));
    Some(SlackRichTextBlock::new(elements))
}

fn bullets(lines: &[String], left_out: usize) -> Option<SlackRichTextElement> {
    if lines.is_empty() {
        return None;
    }
    let more = (left_out > 0).then(|| format!("and {left_out} more"));
    let elements = lines.iter().cloned().chain(more).map(Into::into).collect();
    Some(SlackRichTextList::new(SlackRichTextListStyle::Bullet, elements).into())
}

fn header(view: &View) -> SlackSectionBlock {
    let page = view.page.as_ref().map_or_else(String::new, |url| {
        // A URL has no `<` or `>`; a `|` would end it early, and `&` must be escaped like anywhere.
        let url = url.as_str().replace('|', "%7C").replace('&', "&amp;");
        format!(" or <{url}|open its page>")
    });
    let text = format!("*See the evidence:* `{}`{page}", view.command);
    SlackSectionBlock::new().with_text(SlackBlockText::MarkDown(verbatim(fit(&text, SECTION_LIMIT))))
}

fn footer(view: &View) -> SlackContextBlock {
    let text = format!(
        "{} · finding {} · Nothing has been changed. Cloud Sweeper acts only after a person says yes.",
        mrkdwn(&view.resource, SECTION_LIMIT / 2),
        view.finding_id,
    );
    SlackContextBlock::new(vec![SlackContextBlockElement::MarkDown(verbatim(text))])
}

/// What a notification shows, and what a screen reader reads out.
fn fallback(view: &View) -> String {
    mrkdwn(&format!("{} · {}", view.headline, view.command), TEXT_LIMIT)
}

fn metadata(view: &View, idempotency_key: &str) -> SlackMessageMetadata {
    SlackMessageMetadata::new("cloud_sweeper_finding".to_owned()).with_event_payload(HashMap::from([
        ("finding_id".to_owned(), view.finding_id.clone()),
        ("idempotency_key".to_owned(), fit(&clean(idempotency_key), METADATA_LIMIT)),
    ]))
}

fn emoji(severity: Severity) -> &'static str {
    match severity {
        Severity::Waste => "💤",
        Severity::Blind => "❔",
        Severity::Broken => "🛑",
    }
}

fn bold(text: &str) -> SlackRichTextText {
    SlackRichTextText::new(text.to_owned()).with_style(SlackRichTextStyle::new().with_bold(true))
}

fn verbatim(text: String) -> SlackBlockMarkDownText {
    SlackBlockMarkDownText::new(text).with_verbatim(true)
}
