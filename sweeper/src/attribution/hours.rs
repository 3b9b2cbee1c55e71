//! Hours of machines with their rollups, some hundred at a time.

use super::{HOUR, MADE_AFTER_S, machines::Machine, seen};
use crate::{
    rollup::Rollup,
    store::{NodeHours, PackedRollup, Store, StoreError},
};
use costs::{Hour, Seen, Subject, View};
use jiff::Timestamp;
use std::{collections::BTreeMap, mem};

/// So many rollups are read at once: most have a few kB.
const ROLLUPS_AT_ONCE: usize = 512;
/// Hours of one machine that are read at once.
const HOURS_AT_ONCE: i64 = 128;

/// Machines' hours, and as many of their rollups as are read at once.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    hours: Vec<(&'a Machine, Vec<Hour>)>,
    asked: Vec<NodeHours>,
    rollups: usize,
}

/// What an agent reported of an hour.
#[derive(Debug)]
pub(super) enum Reported {
    /// This.
    Hour(Box<Rollup>),
    /// This version cannot read it.
    Unreadable,
    /// Nothing that is kept.
    Nothing,
}

/// The pieces of a time that are read at once.
pub(super) fn pieces(from_s: i64, to_s: i64) -> impl Iterator<Item = (i64, i64)> {
    let length_s = HOURS_AT_ONCE * HOUR.as_secs();
    let count = (to_s - from_s).max(0).unsigned_abs().div_ceil(length_s.unsigned_abs());
    (0..count).scan(from_s, move |at_s, _| {
        let piece = (*at_s, (*at_s + length_s).min(to_s));
        *at_s = piece.1;
        Some(piece)
    })
}

/// Whether the rollup of an hour decides what it comes to. Of what has no bill nothing is split.
fn needs_rollup(machine: &Machine, hour: &Hour) -> bool {
    machine.is_node && hour.billed_s > 0
}

/// How many rollups are to be read of these machines' stretches; none if these are more than so many.
pub(super) fn rollups_of<'a>(
    stretches: impl Iterator<Item = (&'a Machine, Vec<(i64, i64)>)>,
    most: usize,
) -> Option<usize> {
    let mut rollups = 0;
    for (machine, stretches) in stretches.filter(|(machine, _)| machine.is_node) {
        for (from_s, to_s) in stretches {
            rollups += machine.hours(from_s, to_s).iter().filter(|hour| needs_rollup(machine, hour)).count();
            if rollups > most {
                return None;
            }
        }
    }
    Some(rollups)
}

impl<'a> Batch<'a> {
    /// Takes one of the [`pieces`] of a machine's time up.
    pub(super) fn push(&mut self, machine: &'a Machine, (from_s, to_s): (i64, i64)) {
        let hours = machine.hours(from_s, to_s);
        let mut needed = hours.iter().filter(|hour| needs_rollup(machine, hour)).map(|hour| hour.start_s);
        if let Some(first_s) = needed.next() {
            let end_s = needed.next_back().unwrap_or(first_s) + HOUR.as_secs();
            let time = |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
            self.asked.push(NodeHours { node: machine.key.to_string(), from: time(first_s), to: time(end_s) });
            self.rollups += usize::try_from((end_s - first_s) / HOUR.as_secs()).unwrap_or(0);
        }
        if !hours.is_empty() {
            self.hours.push((machine, hours));
        }
    }

    /// Whether it is to be read before more is taken up.
    pub(super) fn is_full(&self) -> bool {
        self.rollups >= ROLLUPS_AT_ONCE || self.hours.len() >= ROLLUPS_AT_ONCE
    }

    /// Reads the rollups, and hands over each hour with what was reported of it. Nothing is left of the batch.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) async fn each(
        &mut self,
        store: &Store,
        mut take: impl FnMut(&'a Machine, &Hour, &Reported),
    ) -> Result<(), StoreError> {
        let Self { hours, asked, .. } = mem::take(self);
        let rollups = store.packed_hours(&asked).await?;
        for (machine, hours) in hours {
            for hour in &hours {
                take(machine, hour, &reported(machine, hour, &rollups));
            }
            // Each may have unpacked a hundred rollups.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

fn reported(machine: &Machine, hour: &Hour, rollups: &BTreeMap<(String, i64), PackedRollup>) -> Reported {
    if !needs_rollup(machine, hour) {
        return Reported::Nothing;
    }
    match rollups.get(&(machine.key.to_string(), hour.start_s.saturating_mul(1_000))).map(PackedRollup::unpack) {
        Some(Ok(rollup)) => Reported::Hour(Box::new(rollup)),
        Some(Err(error)) => {
            tracing::error!(node = &*machine.key, start_s = hour.start_s, %error, "a rollup cannot be read; its hour is told as unattributed");
            Reported::Unreadable
        }
        None => Reported::Nothing,
    }
}

impl Reported {
    /// What was seen of the hour, and who used it.
    pub(super) fn seen(&self, view: View, machine: &Machine, hour: &Hour, now_s: i64) -> (Seen, Vec<Subject>) {
        match self {
            Self::Hour(rollup) => seen::of(rollup, view, &machine.key),
            Self::Unreadable => (Seen::Not("the rollup of the hour cannot be read by this version".into()), Vec::new()),
            Self::Nothing => (Seen::Not(not_seen(machine, hour, now_s).into()), Vec::new()),
        }
    }
}

fn not_seen(machine: &Machine, hour: &Hour, now_s: i64) -> &'static str {
    match machine.is_node {
        false => "no agent has joined from the machine",
        true if hour.start_s + HOUR.as_secs() + MADE_AFTER_S > now_s => "the rollup of the hour is not made yet",
        true => {
            "no rollup of the hour is kept: the agent of the machine reported nothing, or it is past store.rollup_retention"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_are_the_time_and_none_is_too_long() {
        let hour = 3_600;
        assert_eq!(pieces(0, 0).count(), 0);
        assert_eq!(pieces(hour, 2 * hour).collect::<Vec<_>>(), [(hour, 2 * hour)]);
        let all: Vec<_> = pieces(hour, 258 * hour).collect();
        assert_eq!(all, [(hour, 129 * hour), (129 * hour, 257 * hour), (257 * hour, 258 * hour)]);
    }
}
