//! Several findings that are told by one message: a first sweep that finds 300 idle machines is a handful of messages. Pure.
//!
//! The dearest are shown, a line each; the rest is counted, and one command away. A price that is not known is counted as
//! that: a sum never takes it for zero. Every text is one clean line of bounded length, as in [`crate::message`].

use model::{HourlyRate, Sum, Usd};

use crate::{
    message::{Ask, FindingNotice, how_long},
    text::{clean, fit},
    view::{Severity, ask, last, moment, severity, word},
};

/// Findings that a message shows: as many as a person reads.
const SHOWN: usize = 20;
/// Plans that are asked about: ten machines of one owner are one message. Slack takes 50 blocks, and of all their texts together about 13,000 characters, which
/// it documents nowhere: <https://github.com/slackapi/bolt-js/issues/2509>.
const ASKED: usize = 10;
/// Lines of what was said of a plan that its line shows, and the longest, in UTF-16 units.
const ANSWERS: usize = 4;
const ANSWER_LIMIT: usize = 160;
/// Longest of what a yes to one of them would do.
const SUMMARY_LIMIT: usize = 120;
/// What all lines and buttons may have together, and buttons of one plan at most have: what people said is left out where that would be more.
const ROOM: usize = 11_800;
const OF_BUTTONS: usize = 360;
/// Longest name, kind or place in a line, in UTF-16 units.
const PART_LIMIT: usize = 60;
/// Longest owner or account in a headline, so that what follows it is not cut off.
const OWNER_LIMIT: usize = 40;
/// Longest finding id; real ones have fourteen.
const ID_LIMIT: usize = 32;
/// Longest headline: what Slack takes as a header, with its emoji.
const HEADLINE_LIMIT: usize = 140;
/// Lists what is left out.
const COMMAND: &str = "sweeper findings";

/// What happened to the findings of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// They were found.
    Opened,
    /// Plans were made that would end them.
    Planned,
}

/// One finding of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What is told of it.
    pub notice: FindingNotice,
    /// The same as of its end, if it is over.
    pub end: Option<FindingNotice>,
}

/// Findings of one owner, or of one account, and of one class of waste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// What happened to them.
    pub news: News,
    /// All of them, in any order.
    pub members: Vec<Member>,
}

/// What one message says.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// One finding.
    One(&'a FindingNotice),
    /// Several.
    Several(&'a Bundle),
}

/// One finding in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) details: String,
    pub(crate) finding_id: String,
    /// How it ended.
    pub(crate) ended: Option<String>,
    /// What people are asked, and what a yes would do.
    pub(crate) ask: Option<(Ask, String)>,
    /// What people have said of its plan, and what came of that.
    pub(crate) answers: Vec<String>,
}

/// A bundle made safe and put in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleView {
    pub(crate) severity: Severity,
    pub(crate) headline: String,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) lines: Vec<Line>,
    pub(crate) left_out: usize,
    /// Plans that wait for an answer, and are not asked about here.
    pub(crate) not_asked: usize,
    /// Whether nothing was said of it or came of it yet.
    pub(crate) is_untouched: bool,
    /// Lists what is left out.
    pub(crate) command: &'static str,
    pub(crate) findings: usize,
}

/// Puts a bundle into words.
pub(crate) fn view_of(bundle: &Bundle) -> BundleView {
    let mut members: Vec<&Member> = bundle.members.iter().collect();
    // By what was said at first, so that no line moves when the message is updated; what is not known comes last.
    let weight = |notice: &FindingNotice| match bundle.news {
        News::Opened => notice.rate,
        News::Planned => notice.saving,
    };
    members.sort_by(|a, b| {
        let by_weight = weight(&b.notice).cmp(&weight(&a.notice));
        by_weight.then_with(|| a.notice.finding_id.cmp(&b.notice.finding_id))
    });
    let left: Vec<&FindingNotice> =
        members.iter().filter(|member| member.end.is_none()).map(|member| &member.notice).collect();
    let first = members.first().map(|member| &member.notice);
    let shown = members.iter().take(SHOWN).map(|member| line(bundle.news, &member.notice, member.end.as_ref()));
    let mut lines: Vec<Line> = shown.collect();
    let asked = lines.iter_mut().filter(|line| line.ask.is_some());
    asked.skip(ASKED).for_each(|line| line.ask = None);
    leave_room(&mut lines);
    let wait = members.iter().filter(|member| member.end.is_none() && ask(&member.notice).is_some()).count();
    let asked = lines.iter().filter(|line| line.ask.is_some()).count();
    BundleView {
        severity: match (left.is_empty(), first) {
            (false, Some(first)) => severity(first),
            _ => Severity::Over,
        },
        headline: fit(&headline(bundle, &left, first), HEADLINE_LIMIT),
        facts: facts(bundle, &left),
        lines,
        left_out: members.len().saturating_sub(SHOWN),
        not_asked: wait.saturating_sub(asked),
        is_untouched: members.iter().all(|member| member.end.is_none() && member.notice.answers.is_empty()),
        command: COMMAND,
        findings: members.len(),
    }
}

/// Leaves out what people said where there is no room for it, the newest last, and of the dearest last.
fn leave_room(lines: &mut [Line]) {
    let units = |text: &str| text.encode_utf16().count();
    let of_line = |line: &Line| {
        let ended = line.ended.as_deref().map_or(0, units);
        let buttons = line.ask.as_ref().map_or(0, |_| OF_BUTTONS);
        units(&line.name) + units(&line.details) + units(&line.finding_id) + ended + buttons
    };
    let mut room = ROOM.saturating_sub(lines.iter().map(of_line).sum());
    for line in lines {
        let mut kept = Vec::new();
        for answer in std::mem::take(&mut line.answers).into_iter().rev() {
            let Some(left) = room.checked_sub(units(&answer)) else { break };
            room = left;
            kept.insert(0, answer);
        }
        line.answers = kept;
    }
}

/// `12 idle machines of ada: $4.61/h`, and once some have ended, `9 of 12 idle machines of ada are left: $3.20/h`.
fn headline(bundle: &Bundle, left: &[&FindingNotice], first: Option<&FindingNotice>) -> String {
    let count = bundle.members.len();
    let state = first.map(|first| first.state.as_deref().unwrap_or(&first.verdict));
    let (adjective, what) = match state {
        Some("idle") => ("idle", "machines"),
        // As seen from outside.
        Some("quiet") => ("seemingly unused", "machines"),
        Some("unattached") => ("unattached", "volumes"),
        Some("unused") => ("unused", "addresses"),
        Some("stopped") => ("stopped", "machines"),
        Some("silent") => ("silent", "machines"),
        Some("unregistered") => ("unregistered", "workers"),
        Some("abandoned") => ("abandoned", "workers"),
        Some("relaunching") => ("relaunching", "groups"),
        Some("relaunching template") => ("relaunching", "launch templates"),
        Some("wholly idle") => ("idle", "groups"),
        Some("blocked") => ("blocked", "queues"),
        Some("held") => ("unused", "compute environments"),
        Some("lost") => ("lost", "jobs"),
        Some("starting") => ("slowly starting", "jobs"),
        Some("straggling") => ("straggling", "jobs"),
        Some("headless") => ("orphaned", "jobs"),
        Some("stuck") => ("stuck", "jobs"),
        Some("spinning") => ("suspicious", "jobs"),
        Some("failing") => ("failing", "runs"),
        Some("left behind") => ("orphaned", "tasks"),
        _ => ("wasteful", "machines"),
    };
    let whose = whose(first);
    let each = format!("{adjective} {what}{whose}");
    match (bundle.news, left.len()) {
        (News::Planned, _) => {
            let savings = Sum::of(left.iter().map(|notice| notice.saving.map(HourlyRate::per_hour)));
            format!("Plans would end the waste on {count} {what}{whose}: {}", as_saving(savings))
        }
        (News::Opened, 0) => format!("None of {count} {each} is left"),
        (News::Opened, open) => {
            let costs = together(left);
            match open {
                _ if open == count => format!("{count} {each}: {costs}"),
                1 => format!("1 of {count} {each} is left: {costs}"),
                _ => format!("{open} of {count} {each} are left: {costs}"),
            }
        }
    }
}

/// What these cost together.
fn together(notices: &[&FindingNotice]) -> String {
    as_cost(Sum::of(notices.iter().map(|notice| notice.rate.map(HourlyRate::per_hour))), "/h")
}

fn whose(first: Option<&FindingNotice>) -> String {
    let fitting = |text: &str| fit(&clean(text), OWNER_LIMIT);
    let told = |text: &Option<String>| text.as_deref().map(fitting).filter(|text| !text.is_empty());
    match (first.and_then(|first| told(&first.owner)), first.and_then(|first| told(&first.account))) {
        (Some(owner), _) => format!(" of {owner}"),
        (None, Some(account)) => format!(" without an owner tag ({account})"),
        (None, None) => " without an owner tag".to_owned(),
    }
}

/// What the headline does not say.
fn facts(bundle: &Bundle, left: &[&FindingNotice]) -> Vec<(&'static str, String)> {
    let latest = |member: &Member| member.end.as_ref().map_or(member.notice.spent, |end| end.spent);
    let spent = as_cost(Sum::of(bundle.members.iter().map(latest)), "");
    match bundle.news {
        News::Opened => vec![("Spent so far", spent)],
        News::Planned => vec![("Cost together", together(left)), ("Spent so far", spent)],
    }
}

/// `$4.61/h, and 2 without a known price`.
pub(crate) fn as_cost(sum: Sum, unit: &str) -> String {
    let known = sum.known.in_cents();
    match (sum.count, sum.unknown) {
        (0, _) => "no price is known".to_owned(),
        (_, 0) => format!("{known}{unit}"),
        (_, unknown) => format!("{known}{unit}, and {unknown} without a known price"),
    }
}

/// `they would save $4.10/h, and 2 an unknown amount`.
fn as_saving(sum: Sum) -> String {
    let known = sum.known.in_cents();
    match (sum.count, sum.unknown) {
        (0, _) => "what they would save is not known".to_owned(),
        (_, 0) => format!("they would save {known}/h"),
        (_, unknown) => format!("they would save {known}/h, and {unknown} an unknown amount"),
    }
}

/// An open finding in a line.
pub(crate) fn line_of(notice: &FindingNotice) -> Line {
    line(News::Opened, notice, None)
}

fn line(news: News, notice: &FindingNotice, end: Option<&FindingNotice>) -> Line {
    let told = |text: &Option<String>| text.as_deref().map(part).filter(|text| !text.is_empty());
    let or_unknown = |text: Option<String>, what: &str| text.unwrap_or_else(|| format!("{what} not known"));
    // Slack takes no empty text.
    let named = |text: String| if text.is_empty() { "not named".to_owned() } else { text };
    let name = told(&notice.resource_name).unwrap_or_else(|| named(part(&notice.resource)));
    let mut details: Vec<String> = [told(&notice.resource_kind), told(&notice.place)].into_iter().flatten().collect();
    match news {
        News::Opened => {
            details.push(format!("since {} ({})", moment(notice.since), how_long(notice.since, notice.as_of)));
            details.push(or_unknown(notice.rate.map(|rate| rate.to_string()), "price"));
        }
        News::Planned => {
            details.extend(told(&notice.plan_summary));
            let saves = notice.saving.map(|saving| format!("saves {saving}"));
            details.push(or_unknown(saves, "saving"));
        }
    }
    // What is told of for the first time may have its plan already.
    let nobody_may = notice.ask.as_ref().is_some_and(|ask| ask.nobody_may.is_some());
    details.extend(nobody_may.then(|| "nobody may approve it, and `sweeper plans` says why".to_owned()));
    let answers = notice.answers.iter().map(|answer| fit(&clean(answer), ANSWER_LIMIT));
    let asks = ask(notice).filter(|_| end.is_none());
    Line {
        ask: asks.map(|ask| {
            (ask, fit(&format!("{name}: {}", told(&notice.plan_summary).unwrap_or_default()), SUMMARY_LIMIT))
        }),
        name,
        details: details.join(", "),
        finding_id: named(fit(&word(&notice.finding_id), ID_LIMIT)),
        ended: end.map(ended),
        answers: last(answers.filter(|answer| !answer.is_empty()).collect(), ANSWERS),
    }
}

/// `ended 2026-03-02 05:10 UTC after 5 h, $2.31: work ran on it`.
fn ended(end: &FindingNotice) -> String {
    let lasted = how_long(end.since, end.as_of);
    let spent = end.spent.map_or_else(|| "cost not known".to_owned(), Usd::in_cents);
    match &end.ended {
        Some(ended) => {
            format!(
                "ended {} after {lasted}, {spent}: {}",
                moment(ended.at),
                fit(&clean(&ended.because), PART_LIMIT * 2)
            )
        }
        None => format!("ended after {lasted}, {spent}"),
    }
}

fn part(text: &str) -> String {
    fit(&clean(text), PART_LIMIT)
}
