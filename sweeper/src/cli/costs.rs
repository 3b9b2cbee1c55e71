//! `sweeper costs`.

mod focus;
mod table;

use super::{FAILED, inventory::moment, open_existing, screen};
use crate::{
    attribution::{self, Answer, NotAnswered, Question, Row, Settings, focus::decimal},
    config::Config,
};
use clap::{Args, Subcommand, ValueEnum};
use costs::By;
use jiff::Timestamp;
use std::{borrow::Cow, io::IsTerminal as _, process::ExitCode};

/// What stands below the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  sweeper costs                                each machine of the last seven days: used, idle, unattributed
  sweeper costs --by tool                      what each tool of all pipelines cost, and what nobody used
  sweeper costs --by pipeline,day --from 2026-11-01 --to 2026-12-01
  sweeper costs --by team --output csv >team.csv
  sweeper costs focus --from 2026-11-01 --to 2026-12-01 >november.csv   charges for a FinOps tool, in the columns of FOCUS 1.2
  sweeper costs --by user --output json | jq '.lines[] | select(.kind == \"idle\")'

Lines come to the bill exactly. Time that no agent saw is unattributed and never spread; what has no known price has no amount. docs/costs.md has the rule.";

/// What to add up.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Asked {
    /// One or two of pipeline, run, task, tool, workload, instance, user, team, account, provider, region, day
    #[arg(long, value_name = "DIMENSION[,DIMENSION]", default_value = "instance")]
    by: By,
    /// A moment such as 2026-11-17T09:00:00Z, or a day (its begin in UTC) [default: 7 days before the end]
    #[arg(long, value_parser = moment)]
    from: Option<Timestamp>,
    /// Likewise; it is not in it [default: the begin of this hour]
    #[arg(long, value_parser = moment)]
    to: Option<Timestamp>,
    /// Rows of the table; the others are told as one
    #[arg(long, default_value_t = 50, value_name = "ROWS")]
    top: usize,
    /// For people, for programs, or for spreadsheets
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(subcommand)]
    form: Option<Form>,
}

#[derive(Debug, Subcommand)]
enum Form {
    /// What each machine cost on each day at which price, in the columns of FOCUS 1.2, as CSV
    #[command(after_help = focus::HELP)]
    Focus(focus::Asked),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

pub(super) async fn show(config: &Config, asked: Asked) -> anyhow::Result<ExitCode> {
    if let Some(Form::Focus(asked)) = asked.form {
        return focus::print(config, &asked).await;
    }
    let store = open_existing(config).await?;
    let question = match Question::new(asked.by, asked.from, asked.to, store.now().await?) {
        Ok(question) => question,
        Err(why) => {
            screen::error(&why);
            return Ok(ExitCode::from(FAILED));
        }
    };
    let answer = match attribution::attribute(&store, &Settings::of(config), &question).await {
        Ok(answer) => answer,
        Err(NotAnswered::Store(error)) => return Err(error.into()),
        Err(too_much) => {
            screen::error(&too_much.to_string());
            return Ok(ExitCode::from(FAILED));
        }
    };
    match asked.output {
        Output::Json => screen::json(&answer)?,
        Output::Csv => screen::print(&csv(&answer)?),
        Output::Table => screen::print(&table::of(&answer, asked.top, std::io::stdout().is_terminal())),
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each line of the answer. What is not known has no amount, and its hours instead.
fn csv(answer: &Answer) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(answer.by.iter().copied().chain(["kind", "usd", "hours_not_known"]))?;
    for Row { of, kind, micro_usd, not_known_seconds } in &answer.lines {
        let values = answer
            .by
            .iter()
            .map(|dimension| of.get(dimension).and_then(Option::as_deref).map_or(Cow::Borrowed(""), cell));
        let usd = micro_usd.map_or_else(String::new, decimal);
        let hours = if *not_known_seconds == 0 { String::new() } else { hours(*not_known_seconds) };
        writer.write_record(
            values.chain([kind.as_str().into(), usd.into(), hours.into()]).map(|cell| cell.into_owned()),
        )?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// A name as a spreadsheet may have it: none is taken for a formula. <https://owasp.org/www-community/attacks/CSV_Injection>
fn cell(text: &str) -> Cow<'_, str> {
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let visible = heartbeat::text::visible(text);
    match visible.trim_start().starts_with(FORMULA) {
        true => format!("'{visible}").into(),
        false => visible,
    }
}

/// Hours with three decimals, rounded up: what is not nothing does not read as nothing.
fn hours(seconds: u64) -> String {
    let thousandths = (seconds * 1_000).div_ceil(3_600);
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use costs::{Dimension, Kind};

    fn row(of: &[(&'static str, Option<&str>)], kind: Kind, micro_usd: Option<u64>) -> Row {
        let of = of.iter().map(|(dimension, value)| (*dimension, value.map(str::to_owned))).collect();
        let not_known_seconds = if micro_usd.is_none() { 1 } else { 0 };
        Row { of, kind, micro_usd, not_known_seconds }
    }

    /// An answer by tool, or by instance.
    pub(super) fn answer(dimension: Dimension, lines: &[(Option<&str>, Kind, Option<u64>)]) -> Answer {
        let by = dimension.as_str();
        let lines: Vec<Row> = lines.iter().map(|(value, kind, micros)| row(&[(by, *value)], *kind, *micros)).collect();
        Answer {
            from: "2026-11-20T10:00:00Z".parse().expect("a time"),
            to: "2026-11-27T10:00:00Z".parse().expect("a time"),
            by: vec![by],
            bill_micro_usd: lines.iter().filter_map(|line| line.micro_usd).sum(),
            billed_seconds: 3_600,
            not_known_seconds: lines.iter().map(|line| line.not_known_seconds).sum(),
            lines,
            reasons: Vec::new(),
            dimensions: vec![dimension],
        }
    }

    #[test]
    fn no_name_is_a_formula_and_none_breaks_a_line() {
        let hostile = [
            "=HYPERLINK(\"http://x\")",
            "+1",
            "-1",
            "@SUM(A1)",
            " =1",
            "\t=1",
            "＝1",
            "a,\"b\"",
            "a\r\nb,used,9",
            "\u{1b}[2J",
            "\u{202e}",
        ];
        let lines: Vec<_> = hostile.iter().map(|name| (Some(*name), Kind::Used, Some(104_167))).collect();
        let text = csv(&answer(Dimension::Tool, &lines)).expect("CSV");
        assert_eq!(text.lines().count(), 1 + hostile.len(), "{text}");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        for (record, name) in reader.records().zip(hostile) {
            let record = record.expect("a record");
            assert_eq!(record.iter().skip(1).collect::<Vec<_>>(), ["used", "0.104167", ""], "{name:?}");
            assert!(!record[0].trim_start().starts_with(['=', '+', '-', '@', '＝']), "{record:?}");
            assert!(!record[0].chars().any(char::is_control), "{record:?}");
        }
        assert!(text.contains("\"a,\"\"b\"\"\",used"), "{text}");
    }

    #[test]
    fn what_is_not_known_has_hours_and_no_amount() {
        let text =
            csv(&answer(Dimension::Tool, &[(None, Kind::NotKnown, None), (None, Kind::Idle, Some(0))])).expect("CSV");
        assert_eq!(text, "tool,kind,usd,hours_not_known\n,not_known,,0.001\n,idle,0.000000,\n");
        assert_eq!((decimal(12_000_001), hours(3_600 * 12 + 1_800)), ("12.000001".to_owned(), "12.500".to_owned()));
    }
}
