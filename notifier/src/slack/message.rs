//! Findings in Block Kit: heading, facts, evidence, plan, where to look; of several, a line each. Pure.
//!
//! Untrusted text stands in `rich_text` and `plain_text` where possible, because both are literal;
//! in mrkdwn it is escaped, and `verbatim` keeps Slack from making links and mentions of it.
//! Limits kept, each from <https://docs.slack.dev/reference/block-kit/blocks>: 50 blocks, header
//! 150 characters, section text 3,000, at most 10 fields of 2,000, context elements 10.

use std::collections::HashMap;

use jiff::Timestamp;
use slack_morphism::prelude::{
    SlackBlock, SlackBlockMarkDownText, SlackBlockPlainTextOnly, SlackBlockText, SlackContextBlock,
    SlackContextBlockElement, SlackHeaderBlock, SlackMessageContent, SlackMessageMetadata, SlackRichTextBlock,
    SlackRichTextElement, SlackRichTextList, SlackRichTextListStyle, SlackRichTextSection, SlackRichTextStyle,
    SlackRichTextText, SlackSectionBlock,
};

use super::buttons;
use crate::{
    bundle::{self, Bundle, BundleView, Line, Notice},
    message::FindingNotice,
    text::{clean, fit, mrkdwn},
    view::{NOTHING_CHANGED, ONLY_AFTER_A_YES, Severity, Value, View, moment, view_of},
};

pub(super) const HEADER_LIMIT: usize = 150;
const SECTION_LIMIT: usize = 3_000;
const FIELD_LIMIT: usize = 2_000;
/// Slack takes 40,000 and recommends 4,000; this is what a phone's lock screen shows of it.
pub(super) const TEXT_LIMIT: usize = 1_000;
const METADATA_LIMIT: usize = 256;
/// Names of channels have 80 characters at most.
const CHANNEL_LIMIT: usize = 100;
/// Lines of a bundle in one block: each has at most 500 characters.
pub(super) const LINES: usize = 6;

/// The whole message, and that it was meant for another channel if it stands `instead_of` one. The metadata names the idempotency key, so a repetition is recognisable.
pub(super) fn render(
    notice: &Notice<'_>,
    idempotency_key: &str,
    buttons: bool,
    instead_of: Option<&str>,
) -> SlackMessageContent {
    let mut content = match notice {
        Notice::One(notice) => one(notice, idempotency_key, buttons),
        Notice::Several(bundle) => several(bundle, idempotency_key, buttons),
    };
    if let (Some(channel), Some(blocks)) = (instead_of, &mut content.blocks) {
        blocks.push(meant_for(channel).into());
    }
    content
}

/// Names a channel without pinging anybody there.
fn meant_for(channel: &str) -> SlackContextBlock {
    let channel = mrkdwn(&clean(channel), CHANNEL_LIMIT);
    let text = format!("Meant for {channel}, which did not take it: `sweeper messages` says why.");
    SlackContextBlock::new(vec![SlackContextBlockElement::MarkDown(verbatim(text))])
}

fn one(notice: &FindingNotice, idempotency_key: &str, buttons: bool) -> SlackMessageContent {
    let finding = view_of(notice).finding_id;
    alone(notice, buttons).with_metadata(metadata("cloud_sweeper_finding", "finding_id", finding, idempotency_key))
}

/// The same without metadata, which is of messages of the channel.
pub(super) fn alone(notice: &FindingNotice, buttons: bool) -> SlackMessageContent {
    let view = view_of(notice);
    SlackMessageContent::new().with_text(fallback(&view.headline, &view.command)).with_blocks(blocks(&view, buttons))
}

fn several(bundle: &Bundle, idempotency_key: &str, buttons: bool) -> SlackMessageContent {
    let view = bundle::view_of(bundle);
    SlackMessageContent::new()
        .with_text(fallback(&view.headline, view.command))
        .with_blocks(bundle_blocks(&view, buttons))
        .with_metadata(metadata("cloud_sweeper_bundle", "findings", view.findings.to_string(), idempotency_key))
}

fn blocks(view: &View, buttons: bool) -> Vec<SlackBlock> {
    let mut blocks: Vec<SlackBlock> = vec![heading(view.severity, &view.headline).into()];
    let fields = view.facts.iter().map(|fact| field(fact.label, &fact.value));
    blocks.push(SlackSectionBlock::new().with_fields(fields.collect()).into());
    if let Some(reasons) = instead(view).or_else(|| reasons(view)) {
        blocks.push(reasons.into());
    }
    if let Some(plan) = plan(view) {
        blocks.push(plan.into());
    }
    if let Some(answers) = answers(view) {
        blocks.push(answers.into());
    }
    match &view.ask {
        Some(ask) if buttons => {
            let summary = view.plan.as_deref().unwrap_or(&view.headline);
            blocks.push(buttons::of(ask, summary, &view.finding_id).into());
        }
        None if buttons && view.is_open && !view.finding_id.is_empty() => {
            blocks.push(buttons::proof(&view.finding_id).into());
        }
        _ => {}
    }
    blocks.push(header(view).into());
    blocks.push(footer(view).into());
    blocks
}

/// Heading, sums, a line for each of the dearest with the buttons of its plan, and where to look. At most 20 lines have a block of their own, and ten of these buttons.
fn bundle_blocks(view: &BundleView, buttons: bool) -> Vec<SlackBlock> {
    let mut blocks: Vec<SlackBlock> = vec![heading(view.severity, &view.headline).into()];
    let fields = view.facts.iter().map(|(label, value)| field(label, &Value::Line(value.clone())));
    blocks.push(SlackSectionBlock::new().with_fields(fields.collect()).into());
    let stands_alone = |line: &Line| !line.answers.is_empty() || (buttons && line.ask.is_some());
    for lines in view.lines.chunk_by(|a, b| !stands_alone(a) && !stands_alone(b)).flat_map(|some| some.chunks(LINES)) {
        let elements = lines.iter().map(|line| bundle_line(line).into()).collect();
        let list = SlackRichTextList::new(SlackRichTextListStyle::Bullet, elements);
        let said = lines.iter().find_map(said);
        blocks.push(SlackRichTextBlock::new([list.into()].into_iter().chain(said).collect()).into());
        let asked = lines.iter().filter(|_| buttons).filter_map(|line| Some((line, line.ask.as_ref()?)));
        blocks.extend(asked.map(|(line, (ask, summary))| buttons::of(ask, summary, &line.finding_id).into()));
    }
    blocks.extend(further(view, buttons).map(|text| {
        let section = SlackSectionBlock::new().with_text(SlackBlockText::MarkDown(verbatim(text)));
        SlackBlock::from(section)
    }));
    let changed = if view.is_untouched { NOTHING_CHANGED } else { ONLY_AFTER_A_YES };
    let text = format!("{} findings · {changed}", view.findings);
    blocks.push(SlackContextBlock::new(vec![SlackContextBlockElement::MarkDown(verbatim(text))]).into());
    blocks
}

/// How what has no line or no buttons is reached.
fn further(view: &BundleView, buttons: bool) -> impl Iterator<Item = String> {
    let more = match view.left_out {
        0 => "*See the evidence of one:* `sweeper explain FINDING`".to_owned(),
        more => format!("*and {more} more:* `{}`", view.command),
    };
    let not_asked = (buttons && view.not_asked > 0).then(|| {
        let wait = if view.not_asked == 1 { "plan waits" } else { "plans wait" };
        format!(
            "*{} more {wait} for an answer, without buttons here:* `/sweeper plans` lists them, `/sweeper approve PLAN` shows one with its buttons; in the shell `sweeper plans`",
            view.not_asked
        )
    });
    [Some(more), not_asked].into_iter().flatten()
}

/// What was said of the plan of a line, and came of that, below it: literal text.
fn said(line: &Line) -> Option<SlackRichTextElement> {
    if line.answers.is_empty() {
        return None;
    }
    let section = |answer: &String| SlackRichTextSection::new(vec![SlackRichTextText::new(answer.clone()).into()]);
    let elements = line.answers.iter().map(|answer| section(answer).into()).collect();
    Some(SlackRichTextList::new(SlackRichTextListStyle::Bullet, elements).with_indent(1).into())
}

/// Literal text; struck through once it is over, and then followed by how it ended.
pub(super) fn bundle_line(line: &Line) -> SlackRichTextSection {
    let over = line.ended.is_some();
    let style = |bold: bool, code: bool| {
        let mut style = SlackRichTextStyle::new();
        (style.bold, style.code) = (bold.then_some(true), code.then_some(true));
        style.strike = over.then_some(true);
        style
    };
    let text = |text: String, style: SlackRichTextStyle| {
        let text = SlackRichTextText::new(text);
        if style == SlackRichTextStyle::new() { text } else { text.with_style(style) }
    };
    let mut elements = vec![
        text(line.name.clone(), style(true, false)).into(),
        text(format!(", {}, ", line.details), style(false, false)).into(),
        text(line.finding_id.clone(), style(false, true)).into(),
    ];
    if let Some(ended) = &line.ended {
        elements.push(SlackRichTextText::new(format!(" {ended}")).into());
    }
    SlackRichTextSection::new(elements)
}

fn heading(severity: Severity, headline: &str) -> SlackHeaderBlock {
    let heading = format!("{} {headline}", emoji(severity));
    SlackHeaderBlock::new(SlackBlockPlainTextOnly::from(fit(&heading, HEADER_LIMIT)))
}

fn field(label: &str, value: &Value) -> SlackBlockText {
    // Slack shows it in its reader's time zone.
    let date = |at: &Timestamp| format!("<!date^{}^{{date_short_pretty}} at {{time}}|{}>", at.as_second(), moment(*at));
    let value = match value {
        Value::Line(text) => mrkdwn(text, FIELD_LIMIT - 100),
        Value::At(at) => date(at),
        Value::Since { at, lasted } => format!("{} ({lasted})", date(at)),
    };
    SlackBlockText::MarkDown(verbatim(format!("*{label}*\n{value}")))
}

/// What ended it or came of it, as literal text.
fn instead(view: &View) -> Option<SlackRichTextBlock> {
    let (heading, because) = view.instead.as_ref()?;
    let lead = vec![bold(heading).into(), SlackRichTextText::new(format!("\n{because}")).into()];
    Some(SlackRichTextBlock::new(vec![SlackRichTextSection::new(lead).into()]))
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
fn plan(view: &View) -> Option<SlackRichTextBlock> {
    let plan = view.plan.as_ref()?;
    let mut lead = vec![bold("What could be done").into(), SlackRichTextText::new(format!("\n{plan}")).into()];
    if !view.keeps_billing.is_empty() {
        lead.push(SlackRichTextText::new("\nStill billed after that:".to_owned()).into());
    }
    let mut elements: Vec<SlackRichTextElement> = vec![SlackRichTextSection::new(lead).into()];
    elements.extend(bullets(&view.keeps_billing, 0));
    Some(SlackRichTextBlock::new(elements))
}

/// What people have said of the plan, as literal text.
fn answers(view: &View) -> Option<SlackRichTextBlock> {
    let said = bullets(&view.answers, 0)?;
    let heading = if view.is_over { "What people said, and what came of it" } else { "What people said" };
    let lead: SlackRichTextElement = SlackRichTextSection::new(vec![bold(heading).into()]).into();
    Some(SlackRichTextBlock::new(vec![lead, said]))
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
    let text = format!("*{}:* `{}`{page}", view.lead, view.command);
    SlackSectionBlock::new().with_text(SlackBlockText::MarkDown(verbatim(fit(&text, SECTION_LIMIT))))
}

fn footer(view: &View) -> SlackContextBlock {
    let text =
        format!("{} · finding {} · {}", mrkdwn(&view.resource, SECTION_LIMIT / 2), view.finding_id, view.changed);
    SlackContextBlock::new(vec![SlackContextBlockElement::MarkDown(verbatim(text))])
}

/// What a notification shows, and what a screen reader reads out.
fn fallback(headline: &str, command: &str) -> String {
    mrkdwn(&format!("{headline} · {command}"), TEXT_LIMIT)
}

fn metadata(kind: &str, about: &str, value: String, idempotency_key: &str) -> SlackMessageMetadata {
    SlackMessageMetadata::new(kind.to_owned()).with_event_payload(HashMap::from([
        (about.to_owned(), value),
        ("idempotency_key".to_owned(), fit(&clean(idempotency_key), METADATA_LIMIT)),
    ]))
}

fn emoji(severity: Severity) -> &'static str {
    match severity {
        Severity::Waste => "💤",
        Severity::Blind => "❔",
        Severity::Broken => "🛑",
        Severity::Over | Severity::Done => "✅",
        Severity::Voided => "↩️",
        Severity::Failed => "⚠️",
    }
}

fn bold(text: &str) -> SlackRichTextText {
    SlackRichTextText::new(text.to_owned()).with_style(SlackRichTextStyle::new().with_bold(true))
}

pub(super) fn verbatim(text: String) -> SlackBlockMarkDownText {
    SlackBlockMarkDownText::new(text).with_verbatim(true)
}
