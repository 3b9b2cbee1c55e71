//! All that was saved, and how often plans were wrong, as people are told it.

use super::{Ending, NotKnown, Saved, Shadow, Stopped, realised};
use crate::{
    store::{Action, Direction, Store},
    verdict::words,
};
use guards::action::State;
use model::{HourlyRate, Sum};
use serde::Serialize;
use std::collections::HashSet;

/// All of them.
const ALL: u64 = u64::MAX >> 1;

/// How often people and the machine's own answer agreed with a plan.
#[derive(Debug, Serialize)]
pub struct Plans {
    approved: u64,
    denied: u64,
    done: usize,
    voided: usize,
    failed: usize,
    undone: usize,
    /// Of those that nobody approved.
    shadow: Shadow,
}

/// What everything that was carried out has saved.
#[derive(Debug, Serialize)]
pub struct Savings {
    /// By each of them.
    pub actions: Vec<Saved>,
    /// By all of them so far.
    saved: Sum,
    /// By those that last.
    per_month: Sum,
    plans: Plans,
}

impl Savings {
    /// Reads them.
    ///
    /// # Errors
    /// See [`NotKnown`].
    pub async fn read(store: &Store) -> Result<Self, NotKnown> {
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
        Ok(Self {
            saved: Sum::of(saved.iter().map(|one| one.saved)),
            per_month: Sum::of(lasting.map(|one| one.per_hour.map(HourlyRate::per_month))),
            actions: saved,
            plans,
        })
    }

    /// A sentence each: what was saved, what became of all plans, and of those that nobody approved.
    #[must_use]
    pub fn in_words(&self) -> [String; 3] {
        [self.in_sum(), self.plans.in_words(), unapproved(self.plans.shadow)]
    }

    fn in_sum(&self) -> String {
        if self.actions.is_empty() {
            return "Nothing was carried out yet, so nothing was saved.".to_owned();
        }
        let sum = |sum: &Sum, unit: &str| match (sum.count, sum.unknown) {
            (_, 0) => format!("{}{unit}", sum.known.in_cents()),
            (0, _) => "an amount that is not known".to_owned(),
            (_, unknown) => format!("{}{unit}, and {unknown} an unknown amount", sum.known.in_cents()),
        };
        format!(
            "Saved so far, at the rates of the plans: {}. What lasts of it still saves {}.",
            sum(&self.saved, ""),
            sum(&self.per_month, " a month")
        )
    }
}

impl Plans {
    fn in_words(&self) -> String {
        let Self { approved, denied, done, voided, failed, undone, .. } = self;
        format!(
            "Of all plans {approved} were approved and {denied} denied; {done} were carried out, {voided} voided at the last moment, {failed} failed; {undone} were undone."
        )
    }
}

fn is(action: &Action, state: State) -> bool {
    action.direction == Direction::Do && action.state == state
}

/// Until when a machine stayed stopped, or an address released, and what ended that.
#[must_use]
pub fn until(Stopped { until, ending, .. }: Stopped) -> String {
    let at = words::time(until.as_millisecond());
    match ending {
        Ending::Lasts => format!("still, as of {at}"),
        Ending::NotSeen => "no sweep has seen it so yet".to_owned(),
        Ending::Undone => format!("{at}: undone"),
        Ending::Restarted => format!("{at}: started by somebody"),
        Ending::Gone => format!("{at}: there no more"),
    }
}

fn unapproved(Shadow { worked, rested, too_early, not_known }: Shadow) -> String {
    let all = worked + rested + too_early + not_known;
    let resources = if all == 1 { "resource" } else { "resources" };
    let mut told = vec![format!(
        "Of {all} {resources} with a plan that nobody approved, {worked} worked or was used again within a day, so that carrying it out would have been wrong; {rested} did not"
    )];
    told.extend((too_early > 0).then(|| format!("of {too_early} it is too early to say")));
    told.extend((not_known > 0).then(|| format!("of {not_known} nothing was heard any more")));
    format!("{}.", told.join("; "))
}
