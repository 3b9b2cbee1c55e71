//! Answers to one person who asked by the slash command, in Block Kit. Pure.
//!
//! Bounded as messages are: of a list the first lines are shown, and how many are left out is said. Untrusted text is literal where possible, and escaped elsewhere.

use model::{HourlyRate, Sum};
use slack_morphism::prelude::{
    SlackBlock, SlackBlockText, SlackHeaderBlock, SlackMessageContent, SlackRichTextBlock, SlackRichTextList,
    SlackRichTextListStyle, SlackSectionBlock,
};

use super::message::{self, HEADER_LIMIT, LINES, TEXT_LIMIT, bundle_line, verbatim};
use crate::{
    bundle::{Line, as_cost, line_of},
    message::FindingNotice,
    text::{clean, fit, mrkdwn},
};

/// Lines that are shown: as many as a person reads.
const SHOWN: usize = 20;
/// Longest name and id in a line, and what stands between them, in UTF-16 units: with what a list adds, 500 together.
const NAME_LIMIT: usize = 120;
const ID_LIMIT: usize = 64;
const DETAILS_LIMIT: usize = 290;
/// Longest note, and how many.
const NOTE_LIMIT: usize = 1_000;
const NOTES: usize = 4;
/// What can be asked. Nothing of it is from anybody else.
const HELP: &str = "*What you can ask*\n\
`/sweeper findings` what is open, the dearest first\n\
`/sweeper explain ID` one finding with its evidence; its id, or as much of its beginning as is unique: `f-3f9a`\n\
`/sweeper plans` what would be done about it\n\
`/sweeper approve PLAN` one plan, with the button that approves it; its hash, or at least four digits of its beginning\n\
`/sweeper savings` what was saved\n\
Nobody else sees the answers. Nothing is done until somebody presses *Stop it*, *Hibernate it*, *Release it*, *Delete it* or *End it* and confirms it.";

/// What one person is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What can be asked.
    Help,
    /// A few sentences.
    Told(String),
    /// A finding, and the buttons that are asked by its notice.
    Finding(Box<FindingNotice>),
    /// Several of something.
    List(List),
}

/// Several of something, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// What they are.
    pub headline: String,
    /// Each of them; the first are shown.
    pub rows: Vec<Row>,
    /// Sentences below them.
    pub notes: Vec<String>,
    /// Lists all of them in the shell.
    pub command: &'static str,
}

/// One of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What people call it.
    pub name: String,
    /// What there is to say of it.
    pub details: String,
    /// What commands call it.
    pub id: String,
}

impl List {
    /// Of open findings, the dearest first; what has no known price comes last.
    #[must_use]
    pub fn of_findings(mut notices: Vec<FindingNotice>) -> Self {
        notices.sort_by(|a, b| b.rate.cmp(&a.rate).then_with(|| a.finding_id.cmp(&b.finding_id)));
        let costs = Sum::of(notices.iter().map(|notice| notice.rate.map(HourlyRate::per_hour)));
        let are = if notices.len() == 1 { "finding is" } else { "findings are" };
        let row = |notice| {
            let Line { name, details, finding_id, .. } = line_of(notice);
            Row { name, details, id: finding_id }
        };
        Self {
            headline: format!("{} {are} open: {}", notices.len(), as_cost(costs, "/h")),
            rows: notices.iter().map(row).collect(),
            notes: vec!["The evidence of one: `/sweeper explain ID`.".to_owned()],
            command: "sweeper findings",
        }
    }
}

/// As Slack takes it; buttons, where somebody hears of them.
pub(super) fn render(answer: &Answer, buttons: bool) -> SlackMessageContent {
    match answer {
        Answer::Help => SlackMessageContent::new()
            .with_text("What you can ask: findings, explain, plans, approve, savings".to_owned())
            .with_blocks(vec![section(HELP.to_owned()).into()]),
        Answer::Told(text) => SlackMessageContent::new().with_text(mrkdwn(text, TEXT_LIMIT)),
        // Whoever is shown the evidence needs no button for it.
        Answer::Finding(notice) => message::alone(notice, buttons && notice.ask.is_some()),
        Answer::List(list) => several(list),
    }
}

fn several(list: &List) -> SlackMessageContent {
    let headline = named(&list.headline, HEADER_LIMIT);
    let mut blocks: Vec<SlackBlock> = vec![SlackHeaderBlock::new(headline.clone().into()).into()];
    let shown: Vec<Line> = list.rows.iter().take(SHOWN).map(line).collect();
    for lines in shown.chunks(LINES) {
        let elements = lines.iter().map(|line| bundle_line(line).into()).collect();
        let bullets = SlackRichTextList::new(SlackRichTextListStyle::Bullet, elements);
        blocks.push(SlackRichTextBlock::new(vec![bullets.into()]).into());
    }
    let left_out = list.rows.len().saturating_sub(shown.len());
    if left_out > 0 {
        blocks.push(section(format!("*and {left_out} more:* `{}` in the shell", list.command)).into());
    }
    let notes = list.notes.iter().map(|note| clean(note)).filter(|note| !note.is_empty()).take(NOTES);
    blocks.extend(notes.map(|note| section(mrkdwn(&note, NOTE_LIMIT)).into()));
    SlackMessageContent::new().with_text(mrkdwn(&headline, TEXT_LIMIT)).with_blocks(blocks)
}

fn line(row: &Row) -> Line {
    Line {
        name: named(&row.name, NAME_LIMIT),
        details: named(&row.details, DETAILS_LIMIT),
        finding_id: named(&row.id, ID_LIMIT),
        ended: None,
        ask: None,
        answers: Vec::new(),
    }
}

/// Slack takes no empty text.
fn named(text: &str, limit: usize) -> String {
    let text = fit(&clean(text), limit);
    if text.is_empty() { "not named".to_owned() } else { text }
}

pub(super) fn section(text: String) -> SlackSectionBlock {
    SlackSectionBlock::new().with_text(SlackBlockText::MarkDown(verbatim(text)))
}
