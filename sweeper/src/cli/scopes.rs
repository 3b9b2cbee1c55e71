//! `sweeper scopes`.

use super::{
    Output, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::Config,
    sweep::{ScopeStatus, Timetable},
    verdict::words,
};
use std::process::ExitCode;

pub(super) async fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let timetable = Timetable::new(&config.sweep)?;
    let store = open_existing(config).await?;
    let scopes = ScopeStatus::of(store.work_units().await?, &timetable);
    match output {
        Output::Json => screen::json(&scopes)?,
        Output::Table if scopes.is_empty() => {
            screen::print("Nothing has been swept yet. Run `sweeper serve`, or `sweeper sweep` for one sweep now.");
        }
        Output::Table => screen::print(&table(&scopes)),
    }
    Ok(ExitCode::SUCCESS)
}

fn table(scopes: &[ScopeStatus]) -> String {
    let mut table = bare_table(["SCOPE", "SWEPT FOR", "COMPLETE", "LAST COMPLETE", "NOW", "NEXT", "WHAT WAS READ"]);
    for scope in scopes {
        let time = |time: Option<jiff::Timestamp>| {
            time.map_or_else(|| "never".to_owned(), |time| words::time(time.as_millisecond()))
        };
        let age = scope.last_complete_age_s.map(|age| format!("{} ago", words::span(age.saturating_mul(1_000))));
        let now = match (&scope.swept_by, scope.lease_until) {
            (Some(by), Some(until)) => format!("{by}, until {} or longer", words::time(until.as_millisecond())),
            _ => "-".to_owned(),
        };
        let not_read = scope.failed.as_ref().map(|failed| format!("not read: {failed}"));
        let is_empty = scope.account.is_some() && scope.listed.is_none() && scope.complete == Some(true);
        let nothing = is_empty.then(|| "nothing is there".to_owned());
        let read = [scope.listed.clone(), not_read, nothing].into_iter().flatten().collect::<Vec<_>>().join("; ");
        table.add_row([
            screen::plain(&scope.name()),
            time(scope.swept_for),
            match scope.complete {
                Some(true) => "yes",
                Some(false) => "no",
                None => "not known",
            }
            .to_owned(),
            age.unwrap_or_else(|| "never".to_owned()),
            screen::plain(&now),
            time(scope.next_at),
            screen::plain(if read.is_empty() { "-" } else { &read }),
        ]);
    }
    trim_lines(&table.to_string())
}
