//! A digest made safe and put in order: the mail only lays it out. Pure.
//!
//! Every text is one clean line of bounded length, and every list has at most [`SHOWN`] lines and a count of what is left out: whatever a digest holds, its HTML stays below the 102 kB at which Gmail cuts a mail off.

use super::{AuditHead, Class, Day, Digest, Every, Listed, Machines, Open, Unseen, Waiting};
use crate::{
    bundle::as_cost,
    charts::{Column, Length, MAX_COLUMNS},
    message::lasting,
    text::{clean, fit},
    view::word,
};
use jiff::civil::DateTime;
use model::{HourlyRate, Sum, Usd};

/// Lines of a list that a mail shows; the others are a command away.
const SHOWN: usize = 10;
/// Longest part of a line, in UTF-16 units.
const PART_LIMIT: usize = 60;
/// Longest reason.
const WHY_LIMIT: usize = 120;
/// Classes of waste that are shown: as many as there are, and some more.
const CLASSES: usize = 30;
/// Longest headline.
const HEADLINE_LIMIT: usize = 140;

/// One class of waste, with a bar as long as it is dear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassBar {
    pub(crate) name: String,
    pub(crate) amount: String,
    /// None if no price of it is known.
    pub(crate) length: Option<Length>,
}

/// One day, with a column as high as it was dear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DayColumn {
    pub(crate) label: String,
    pub(crate) amount: String,
    pub(crate) column: Column,
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) details: String,
    /// Shows more, in a shell.
    pub(crate) command: Option<String>,
}

/// A list with its heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) lines: Vec<Line>,
    /// How many are left out, and what lists them.
    pub(crate) more: Option<String>,
}

/// All that a mail lays out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DigestView {
    pub(crate) list: String,
    pub(crate) subject: String,
    pub(crate) headline: String,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) classes: Vec<ClassBar>,
    pub(crate) days: Vec<DayColumn>,
    /// What the columns do not show.
    pub(crate) days_note: Option<String>,
    pub(crate) sections: Vec<Section>,
    pub(crate) audit: String,
    /// Proves later that no entry of the audit log is missing.
    pub(crate) audit_command: Option<String>,
    pub(crate) rhythm: &'static str,
}

impl DigestView {
    /// What the columns show, for those who see no pictures.
    pub(crate) fn days_in_words(&self) -> String {
        let days: Vec<String> = self.days.iter().map(|day| format!("{} {}", day.label, day.amount)).collect();
        format!("What waste cost each day: {}", days.join(", "))
    }
}

/// Puts a digest into words.
pub(crate) fn view_of(digest: &Digest) -> DigestView {
    let whose = digest.owner.as_deref().map(part).filter(|owner| !owner.is_empty());
    let headline = headline(digest, whose.as_deref());
    let until = digest.period.until.date();
    let period = match digest.every {
        Every::Day => format!("{until}"),
        Every::Week => format!("Week to {until}"),
    };
    DigestView {
        list: part(&digest.list),
        subject: format!("{period}: {headline}"),
        facts: facts(digest),
        classes: classes(&digest.classes),
        days: days(&digest.days),
        days_note: days_note(&digest.days),
        sections: sections(digest).into_iter().filter(|section| !section.lines.is_empty()).collect(),
        audit: audit(&digest.audit),
        audit_command: (digest.audit.entries > 0)
            .then(|| format!("sweeper audit verify --head {}", id(&digest.audit.hash))),
        rhythm: match digest.every {
            Every::Day => "once a day",
            Every::Week => "once a week",
        },
        headline,
    }
}

/// `12 findings of ada cost $4.61/h, and 1 without a known price; 2 plans wait for a decision`.
fn headline(digest: &Digest, whose: Option<&str>) -> String {
    let whose = whose.map_or_else(String::new, |owner| format!(" of {owner}"));
    let open = &digest.open;
    let waits = match digest.waiting.count {
        0 => String::new(),
        count => format!("; {} for a decision", counted(count, "plan waits", "plans wait")),
    };
    let headline = match (open.count, open.sum.count) {
        (0, _) => format!("No open finding{whose}{waits}"),
        (count, 0) => format!("{}{whose}: {}{waits}", counted(count, "finding", "findings"), as_cost(open.sum, "/h")),
        (1, _) => format!("1 finding{whose} costs {}{waits}", as_cost(open.sum, "/h")),
        (count, _) => format!("{count} findings{whose} cost {}{waits}", as_cost(open.sum, "/h")),
    };
    fit(&headline, HEADLINE_LIMIT)
}

fn facts(digest: &Digest) -> Vec<(&'static str, String)> {
    let Digest { period, open, found, ended, saved, waiting, unseen, running, .. } = digest;
    let mut facts = vec![
        ("Period", format!("{} to {}, {}", moment(period.from), moment(period.until), part(&period.zone))),
        ("Waste now", group("finding", "findings", open.count, open.sum)),
    ];
    let running = running.map(|Machines { count, per_hour }| group("machine", "machines", count, per_hour));
    facts.push(("Cloud machines", running.unwrap_or_else(|| "not known: no sweep has listed them".to_owned())));
    facts.push(("Found", group("finding", "findings", found.count, found.per_hour)));
    facts.push((
        "Ended",
        match ended.count {
            0 => "none".to_owned(),
            count => format!("{}, which cost {}", counted(count, "finding", "findings"), as_cost(ended.spent, "")),
        },
    ));
    facts.push(("Saved", saved_in_words(saved)));
    facts.push((
        "To decide",
        match waiting.count {
            0 => "no plan waits for a decision".to_owned(),
            count => format!("{}, which would save {}", counted(count, "plan", "plans"), as_saving(waiting.sum, "/h")),
        },
    ));
    let blind = unseen.as_ref().map(|unseen| group("machine", "machines", unseen.count, unseen.sum));
    facts.push(("Seen by nobody", blind.unwrap_or_else(|| "not known: no sweep has listed them".to_owned())));
    facts
}

fn saved_in_words(saved: &super::Saved) -> String {
    let all = saved.so_far;
    if all.count + all.unknown == 0 {
        return "nothing was carried out yet".to_owned();
    }
    let lasting = saved.per_month;
    let lasting = match lasting.count + lasting.unknown {
        0 => String::new(),
        _ => format!("; what lasts of it still saves {}", as_saving(lasting, " a month")),
    };
    format!("{} in this period, {} so far{lasting}", as_saving(saved.in_period, ""), as_saving(all, ""))
}

/// `$4.10/h, and 2 an unknown amount`.
fn as_saving(sum: Sum, unit: &str) -> String {
    let known = sum.known.in_cents();
    match (sum.count, sum.unknown) {
        (_, 0) => format!("{known}{unit}"),
        (0, _) => "an amount that is not known".to_owned(),
        (_, unknown) => format!("{known}{unit}, and {unknown} an unknown amount"),
    }
}

/// `12 findings: $4.61/h ($3365.30 a month), and 2 without a known price`.
fn group(one: &str, many: &str, count: usize, per_hour: Sum) -> String {
    if count == 0 {
        return "none".to_owned();
    }
    let month = HourlyRate::new(per_hour.known).per_month().in_cents();
    let unit = format!("/h ({month} a month)");
    format!("{}: {}", counted(count, one, many), as_cost(per_hour, &unit))
}

fn classes(classes: &[Class]) -> Vec<ClassBar> {
    let largest = classes.iter().map(|class| class.per_hour.known.micros()).max().unwrap_or_default();
    let bar = |class: &Class| ClassBar {
        name: part(&class.name),
        amount: format!("{}, {}", counted(class.count, "finding", "findings"), as_cost(class.per_hour, "/h")),
        length: (class.per_hour.count > 0).then(|| Length::of(class.per_hour.known.micros(), largest)),
    };
    classes.iter().take(CLASSES).map(bar).collect()
}

/// The last ones, as many as the picture has room for.
fn days(days: &[Day]) -> Vec<DayColumn> {
    let days = &days[days.len().saturating_sub(MAX_COLUMNS)..];
    let largest = days.iter().map(|day| day.cost.known.micros()).max().unwrap_or_default();
    let column = |day: &Day| {
        let is_known = day.cost.count > 0 || day.cost.unknown == 0;
        let amount = if is_known { short(day.cost.known) } else { "?".to_owned() };
        let column = match is_known {
            true => Column::Known(Length::of(day.cost.known.micros(), largest)),
            false => Column::Unknown,
        };
        DayColumn { label: day.date.strftime("%a %-d").to_string(), amount, column }
    };
    days.iter().map(column).collect()
}

fn days_note(days: &[Day]) -> Option<String> {
    let unknown = days.iter().map(|day| day.cost.unknown).max().filter(|unknown| *unknown > 0)?;
    let findings = counted(unknown, "finding", "findings");
    Some(format!("On a day up to {findings} without a known price: no column holds what they cost."))
}

fn sections(digest: &Digest) -> Vec<Section> {
    let none = Listed { first: Vec::new(), count: 0, sum: Sum::of(std::iter::empty()) };
    let unseen = digest.unseen.as_ref().unwrap_or(&none);
    let unread = Listed { first: digest.unread.clone(), count: digest.unread.len(), sum: none.sum };
    vec![
        section("The most expensive", &digest.open, open, "sweeper findings"),
        section("Waiting for a decision", &digest.waiting, waiting, "sweeper plans"),
        section("Blind spots: nobody sees what these do", unseen, blind, "sweeper sweep"),
        section("Not read, or not as a whole", &unread, |scope| place(scope), "sweeper scopes"),
    ]
}

fn section<T>(title: &'static str, listed: &Listed<T>, line: impl Fn(&T) -> Line, command: &str) -> Section {
    let lines: Vec<Line> = listed.first.iter().take(SHOWN).map(line).collect();
    let left_out = listed.count.max(listed.first.len()).saturating_sub(lines.len());
    Section { title, lines, more: (left_out > 0).then(|| format!("and {left_out} more: {command}")) }
}

fn open(open: &Open) -> Line {
    let told = |text: &Option<String>| text.as_deref().map(part).filter(|text| !text.is_empty());
    let mut details: Vec<String> = [told(&open.kind), told(&open.place)].into_iter().flatten().collect();
    details.extend(told(&open.owner).map(|owner| format!("of {owner}")));
    details.push(format!("for {}", lasting(open.lasts)));
    details.push(open.rate.map_or_else(|| "price not known".to_owned(), |rate| rate.to_string()));
    details.extend(open.spent.map(|spent| format!("{} so far", spent.in_cents())));
    let command = Some(format!("sweeper explain {}", id(&open.finding_id)));
    Line { name: named(&open.name), details: details.join(", "), command }
}

fn waiting(plan: &Waiting) -> Line {
    let saves = plan.saves.map_or_else(|| "saving not known".to_owned(), |rate| format!("saves {rate}"));
    let said = match plan.approvals {
        0 => "nobody has answered".to_owned(),
        count => format!("{count} said yes so far"),
    };
    let details = [part(&plan.title), saves, said].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
    let command = Some(format!("sweeper explain {}", id(&plan.finding_id)));
    Line { name: format!("{} ({})", named(&plan.name), id(&plan.plan)), details: details.join(", "), command }
}

fn blind(machine: &Unseen) -> Line {
    let kind = machine.kind.as_deref().map(part).filter(|text| !text.is_empty());
    let price = machine.rate.map_or_else(|| "price not known".to_owned(), |rate| rate.to_string());
    let why = fit(&clean(&machine.why), WHY_LIMIT);
    let details = kind.into_iter().chain([price, why]).filter(|text| !text.is_empty()).collect::<Vec<_>>();
    Line { name: named(&machine.name), details: details.join(", "), command: None }
}

fn place(scope: &str) -> Line {
    Line { name: named(scope), details: String::new(), command: None }
}

fn audit(head: &AuditHead) -> String {
    if head.entries == 0 {
        return "The audit log has no entry yet.".to_owned();
    }
    let entries = counted(usize::try_from(head.entries).unwrap_or(usize::MAX), "entry", "entries");
    format!("The audit log has {entries}. Keep this mail: by it you can prove later that none is missing.")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn moment(at: DateTime) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

/// An amount for a column's narrow label: `$9.87`, `$123`, `$12.3k`, `$4.5M`.
fn short(amount: Usd) -> String {
    let dollars = amount.micros() / 1_000_000;
    let tenths = |unit: i64| format!("{}.{}", dollars / unit, dollars % unit / (unit / 10));
    match dollars {
        ..10 => amount.in_cents(),
        10..1_000 => format!("${dollars}"),
        1_000..1_000_000 => format!("${}k", tenths(1_000)),
        _ => format!("${}M", tenths(1_000_000)),
    }
}

fn part(text: &str) -> String {
    fit(&clean(text), PART_LIMIT)
}

fn named(text: &str) -> String {
    let name = part(text);
    if name.is_empty() { "not named".to_owned() } else { name }
}

/// What a shell takes as one plain word, never empty.
fn id(text: &str) -> String {
    let word = fit(&word(text), 64);
    if word.is_empty() { "not-named".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_on_a_column_are_short_and_never_nothing_for_something() {
        for (micros, text) in [
            (0, "$0.00"),
            (4_000, "<$0.01"),
            (9_870_000, "$9.87"),
            (10_990_000, "$10"),
            (999_990_000, "$999"),
            (12_345_000_000, "$12.3k"),
            (4_560_000_000_000, "$4.5M"),
        ] {
            assert_eq!(short(Usd::from_micros(micros)), text);
        }
    }
}
