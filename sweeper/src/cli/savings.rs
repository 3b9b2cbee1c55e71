//! `sweeper savings`: what was saved by what people approved, and how often it was wrong.

use super::{
    Output, open_existing, screen,
    screen::{bare_table, trim_lines},
};
use crate::{
    config::Config,
    savings::{Ending, Saved, Shadow, Stopped, realised},
    store::{Action, Direction, Store},
    verdict::words,
};
use guards::action::State;
use model::{HourlyRate, Sum};
use serde::Serialize;
use std::{collections::HashSet, process::ExitCode};

/// All of them.
const ALL: u64 = u64::MAX >> 1;

/// How often people and the machine's own answer agreed with a plan.
#[derive(Serialize)]
struct Plans {
    approved: u64,
    denied: u64,
    done: usize,
    voided: usize,
    failed: usize,
    undone: usize,
    /// Of those that nobody approved.
    shadow: Shadow,
}

#[derive(Serialize)]
struct Savings {
    actions: Vec<Saved>,
    /// By all of them so far.
    saved: Sum,
    /// By those that last.
    per_month: Sum,
    plans: Plans,
}

pub(super) async fn show(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let savings = savings(&open_existing(config).await?).await?;
    match output {
        Output::Json => screen::json(&savings)?,
        Output::Table => {
            if savings.actions.is_empty() {
                screen::print("Nothing was carried out yet, so nothing was saved.");
            } else {
                screen::print(&trim_lines(&table(&savings.actions)));
                screen::print(&sums(&savings));
            }
            screen::print(&plans(&savings.plans));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn savings(store: &Store) -> anyhow::Result<Savings> {
    let actions = store.actions(ALL).await?;
    let saved = realised(store, &actions).await?;
    let undone: HashSet<&str> = actions
        .iter()
        .filter(|action| action.direction == Direction::Undo && action.state == State::Done)
        .map(|action| action.plan.as_str())
        .collect();
    let [approved, denied] = store.answered_plans().await?;
    let count = |state| actions.iter().filter(|action| is(action, state)).count();
    let plans = Plans {
        approved,
        denied,
        done: count(State::Done),
        voided: count(State::Voided),
        failed: count(State::Failed),
        undone: undone.len(),
        shadow: Shadow::of(&store.unapproved().await?, store.now().await?),
    };
    let lasting = saved.iter().filter(|one| one.stopped.ending == Ending::Lasts);
    Ok(Savings {
        saved: Sum::of(saved.iter().map(|one| one.saved)),
        per_month: Sum::of(lasting.map(|one| one.per_hour.map(HourlyRate::per_month))),
        actions: saved,
        plans,
    })
}

fn is(action: &Action, state: State) -> bool {
    action.direction == Direction::Do && action.state == state
}

fn table(saved: &[Saved]) -> String {
    let mut table = bare_table(["PLAN", "WHAT", "STOPPED", "UNTIL", "SAVES", "SO FAR", "APPROVED BY"]);
    let or_unknown = |amount: Option<String>| amount.unwrap_or_else(|| "not known".to_owned());
    for one in saved {
        table.add_row([
            one.plan.short().to_owned(),
            screen::plain(&one.title),
            words::time(one.stopped.since.as_millisecond()),
            until(one.stopped),
            or_unknown(one.per_hour.map(|rate| rate.to_string())),
            or_unknown(one.saved.map(model::Usd::in_cents)),
            screen::plain(&one.approved_by.join(", ")),
        ]);
    }
    table.to_string()
}

fn until(Stopped { until, ending, .. }: Stopped) -> String {
    let at = words::time(until.as_millisecond());
    match ending {
        Ending::Lasts => format!("still, as of {at}"),
        Ending::NotSeen => "no sweep has seen it stopped yet".to_owned(),
        Ending::Undone => format!("{at}: undone"),
        Ending::Restarted => format!("{at}: started by somebody"),
        Ending::Gone => format!("{at}: there no more"),
    }
}

fn sums(savings: &Savings) -> String {
    let sum = |sum: &Sum, unit: &str| match (sum.count, sum.unknown) {
        (_, 0) => format!("{}{unit}", sum.known.in_cents()),
        (0, _) => "an amount that is not known".to_owned(),
        (_, unknown) => format!("{}{unit}, and {unknown} an unknown amount", sum.known.in_cents()),
    };
    format!(
        "Saved so far, at the rates of the plans: {}. What is stopped still saves {}.",
        sum(&savings.saved, ""),
        sum(&savings.per_month, " a month")
    )
}

fn plans(plans: &Plans) -> String {
    let Plans { approved, denied, done, voided, failed, undone, shadow } = plans;
    let people = format!(
        "Of all plans {approved} were approved and {denied} denied; {done} were carried out, {voided} voided at the last moment, {failed} failed; {undone} were undone."
    );
    format!("{people}\n{}", unapproved(*shadow))
}

fn unapproved(Shadow { worked, rested, too_early, not_known }: Shadow) -> String {
    let all = worked + rested + too_early + not_known;
    let machines = if all == 1 { "machine" } else { "machines" };
    let mut told = vec![format!(
        "Of {all} {machines} with a plan that nobody approved, {worked} worked again within a day, so that stopping would have been wrong; {rested} did not"
    )];
    told.extend((too_early > 0).then(|| format!("of {too_early} it is too early to say")));
    told.extend((not_known > 0).then(|| format!("of {not_known} nothing was heard any more")));
    format!("{}.", told.join("; "))
}
