//! Costs as a table, for people.

use super::{super::screen, hours};
use crate::{
    attribution::{Answer, Row},
    verdict::words,
};
use comfy_table::{Cell, CellAlignment, Table};
use costs::{Dimension, Kind};
use model::Usd;
use screen::{BOLD, DIM, WARN, bare_table, plain, trim_lines};
use std::{collections::BTreeMap, fmt::Write as _};

/// The longest bar, in characters.
const BAR: u64 = 24;

/// The kinds that have amounts, and what each is called.
const KINDS: [(Kind, &str); 6] = [
    (Kind::Used, "used"),
    (Kind::ReservedUnused, "reserved, not used"),
    (Kind::System, "system"),
    (Kind::Unowned, "in use, by whom is not known"),
    (Kind::Idle, "idle"),
    (Kind::Unattributed, "unattributed"),
];

/// A row of the table: what its cells are, and its amounts by kind.
#[derive(Debug, Default)]
struct Shown {
    cells: Vec<String>,
    by_kind: BTreeMap<Kind, u64>,
    not_known_s: u64,
}

impl Shown {
    fn micros(&self) -> u64 {
        self.by_kind.values().sum()
    }

    fn take_up(&mut self, row: &Row) {
        if let Some(micros) = row.micro_usd {
            *self.by_kind.entry(row.kind).or_default() += micros;
        }
        self.not_known_s += row.not_known_seconds;
    }
}

/// The table, what it comes to, and what is not known; bars only where somebody sees them.
pub(super) fn of(answer: &Answer, top: usize, has_bars: bool) -> String {
    let (from, to) = (words::time(answer.from.as_millisecond()), words::time(answer.to.as_millisecond()));
    let mut out = format!("{DIM}{from} to {to}{DIM:#}\n");
    if answer.lines.is_empty() {
        out.push_str("Nothing was billed then, as far as sweeps have seen.\n");
        return out;
    }
    let of_subjects = answer.dimensions.iter().any(|dimension| dimension.is_of_subjects());
    let mut rows = if of_subjects { by_subject(answer) } else { by_place(answer) };
    rows.sort_by_key(|row| std::cmp::Reverse((row.micros(), row.not_known_s)));
    if rows.len() > top {
        let mut others = Shown { cells: vec![format!("({} others)", rows.len() - top)], ..Shown::default() };
        for row in rows.split_off(top) {
            row.by_kind.iter().for_each(|(kind, micros)| *others.by_kind.entry(*kind).or_default() += micros);
            others.not_known_s += row.not_known_s;
        }
        others.cells.resize(answer.dimensions.len(), String::new());
        rows.push(others);
    }
    out.push_str(&trim_lines(&table(answer, &rows, of_subjects, has_bars).to_string()));
    out.push('\n');
    sums(&mut out, answer);
    out
}

/// A line for each kind: what nobody used has no subject.
fn by_subject(answer: &Answer) -> Vec<Shown> {
    let shown = |row: &Row| {
        let value = |dimension: &Dimension| match row.of.get(dimension.as_str()).and_then(Option::as_deref) {
            Some(value) => plain(value),
            None if !dimension.is_of_subjects() || row.kind == Kind::Used => none(*dimension).to_owned(),
            None if row.kind == Kind::NotKnown => "(cost not known)".to_owned(),
            None => format!("({})", KINDS.iter().find(|(kind, _)| *kind == row.kind).map_or("", |(_, name)| name)),
        };
        let mut shown = Shown { cells: answer.dimensions.iter().map(value).collect(), ..Shown::default() };
        shown.take_up(row);
        shown
    };
    answer.lines.iter().map(shown).collect()
}

/// What stands for a value that is not there.
fn none(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Pipeline | Dimension::Run => "(in no known run)",
        Dimension::Task | Dimension::Tool => "(of no known task or tool)",
        _ => "(not known)",
    }
}

/// A line for each place, with a column for each kind.
fn by_place(answer: &Answer) -> Vec<Shown> {
    let mut rows = BTreeMap::<Vec<Option<&str>>, Shown>::new();
    for row in &answer.lines {
        let values: Vec<_> = answer.by.iter().map(|by| row.of.get(by).and_then(Option::as_deref)).collect();
        let cell = |value: &Option<&str>| value.map_or_else(|| "(not known)".to_owned(), plain);
        let cells = values.iter().map(cell).collect();
        rows.entry(values).or_insert_with(|| Shown { cells, ..Shown::default() }).take_up(row);
    }
    rows.into_values().collect()
}

fn usd(micros: u64) -> String {
    Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)).in_cents()
}

fn table(answer: &Answer, rows: &[Shown], of_subjects: bool, has_bars: bool) -> Table {
    let has = |kind: Kind| rows.iter().any(|row| row.by_kind.get(&kind).is_some_and(|micros| *micros > 0));
    let kinds: Vec<_> = KINDS.iter().filter(|(kind, _)| !of_subjects && has(*kind)).collect();
    let mut header: Vec<String> = answer.by.iter().map(|by| by.to_uppercase()).collect();
    header.extend(["COST", "OF ALL"].map(str::to_owned));
    header.extend(kinds.iter().map(|(kind, _)| kind.as_str().replace('_', " ").to_uppercase()));
    let has_unknown = rows.iter().any(|row| row.not_known_s > 0);
    header.extend(has_unknown.then(|| "HOURS NOT KNOWN".to_owned()));
    header.extend(has_bars.then(String::new));
    let mut table = bare_table(header);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let most = rows.iter().map(Shown::micros).max().unwrap_or(0).max(1);
    for row in rows {
        let micros = row.micros();
        let is_all_unknown = row.by_kind.is_empty();
        let mut cells: Vec<Cell> = row.cells.iter().map(Cell::new).collect();
        cells.push(right(if is_all_unknown { "not known".to_owned() } else { usd(micros) }));
        cells.push(right(if is_all_unknown { String::new() } else { per_cent(micros, answer.bill_micro_usd) }));
        cells.extend(
            kinds.iter().map(|(kind, _)| right(row.by_kind.get(kind).map_or_else(String::new, |micros| usd(*micros)))),
        );
        if has_unknown {
            cells.push(right(if row.not_known_s == 0 { String::new() } else { hours(row.not_known_s) }));
        }
        if has_bars {
            // The least that is not nothing shows.
            let length = (u128::from(micros) * u128::from(BAR)).div_ceil(u128::from(most));
            cells.push(Cell::new("█".repeat(usize::try_from(length).unwrap_or(0))));
        }
        table.add_row(cells);
    }
    table
}

/// `12.3 %`
fn per_cent(part: u64, whole: u64) -> String {
    let thousandths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// What all lines come to, exactly, and what is not known, and why.
fn sums(out: &mut String, answer: &Answer) {
    let exact = |micros: u64| Usd::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)).to_string();
    let of =
        |kind: Kind| answer.lines.iter().filter(|row| row.kind == kind).filter_map(|row| row.micro_usd).sum::<u64>();
    let parts: Vec<String> = KINDS
        .iter()
        .map(|(kind, name)| (of(*kind), name))
        .filter(|(micros, _)| *micros > 0)
        .map(|(micros, name)| format!("{} {name}", exact(micros)))
        .collect();
    let _ = write!(
        out,
        "{BOLD}{}{BOLD:#} for {} machine hours",
        exact(answer.bill_micro_usd),
        hours(answer.billed_seconds)
    );
    let _ = writeln!(out, "{}", if parts.is_empty() { String::new() } else { format!(" = {}", parts.join(" + ")) });
    if answer.not_known_seconds > 0 {
        let _ = writeln!(
            out,
            "{WARN}not known:{WARN:#} what {} machine hours more cost; they are in no sum",
            hours(answer.not_known_seconds)
        );
    }
    for reason in &answer.reasons {
        let what = match reason.kind {
            Kind::Unattributed => format!("unattributed {}", exact(reason.micro_usd)),
            _ => "not known".to_owned(),
        };
        let machines =
            if reason.machines == 1 { "1 machine".to_owned() } else { format!("{} machines", reason.machines) };
        let _ = writeln!(out, "  {what}, {} hours of {machines}: {}", hours(reason.seconds), plain(&reason.why));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::answer, *};
    use crate::attribution::Reason;

    #[test]
    fn by_tool_what_no_tool_used_is_a_line_of_its_own() {
        let lines = [
            (Some("bwa\u{1b}[2J"), Kind::Used, Some(2_000_000)),
            (None, Kind::Idle, Some(1_000_000)),
            (None, Kind::Used, Some(500_000)),
            (None, Kind::NotKnown, None),
        ];
        let mut answer = answer(Dimension::Tool, &lines);
        let why = "a Spot instance does not cost the on-demand price".to_owned();
        answer.reasons = vec![Reason { kind: Kind::NotKnown, why, machines: 1, seconds: 1, micro_usd: 0 }];
        let text = anstream::adapter::strip_str(&of(&answer, 50, true)).to_string();
        let expected = "\
2026-11-20 10:00:00 UTC to 2026-11-27 10:00:00 UTC
 TOOL                        COST       OF ALL  HOURS NOT KNOWN
 bwa\\u{1b}[2J                    $2.00  57.1 %                   ████████████████████████
 (idle)                          $1.00  28.6 %                   ████████████
 (of no known task or tool)      $0.50  14.3 %                   ██████
 (cost not known)            not known                    0.001
$3.50 for 1.000 machine hours = $2.50 used + $1.00 idle
not known: what 0.001 machine hours more cost; they are in no sum
  not known, 0.001 hours of 1 machine: a Spot instance does not cost the on-demand price
";
        assert_eq!(text, expected, "{text}");
        assert!(!of(&answer, 50, false).contains('█'));
    }

    #[test]
    fn by_machine_each_kind_is_a_column_and_what_is_beyond_the_top_is_told_as_one() {
        let lines = [
            (Some("i-1"), Kind::Used, Some(3_000_000)),
            (Some("i-2"), Kind::Unattributed, Some(2_000_000)),
            (Some("i-1"), Kind::Idle, Some(1_000_000)),
            (Some("i-3"), Kind::Unattributed, Some(4)),
        ];
        let text = anstream::adapter::strip_str(&of(&answer(Dimension::Instance, &lines), 1, false)).to_string();
        let expected = "\
2026-11-20 10:00:00 UTC to 2026-11-27 10:00:00 UTC
 INSTANCE    COST   OF ALL  USED   IDLE   UNATTRIBUTED
 i-1         $4.00  66.7 %  $3.00  $1.00
 (2 others)  $2.00  33.3 %                       $2.00
$6.000004 for 1.000 machine hours = $3.00 used + $1.00 idle + $2.000004 unattributed
";
        assert_eq!(text, expected, "{text}");
        assert!(of(&answer(Dimension::Instance, &[]), 1, false).contains("Nothing was billed"));
    }
}
