//! What a node, its workloads, runs, tasks and tools did in five minutes, and in an hour.
//!
//! A rollup is a function of what is stored below it: the heartbeats that ended in its five minutes with the ones before them, or the twelve rollups of its hour.
//! It is made anew as a whole whenever one of these has changed, so that heartbeats in any order, twice or hours late come to the same.

mod activity;
mod between;
mod histogram;
mod period;
mod subject;
mod summary;

pub use activity::{Activity, Counter, Extremes, Peak, Resource, Sum};
pub use histogram::Histogram;
pub use period::{Period, Tier};
pub use subject::{Label, Subject};
pub use summary::Summary;

use between::between;
use heartbeat::{BootId, wire::Heartbeat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raised whenever the same heartbeats come to another rollup than before.
const VERSION: u32 = 4;
/// Most workloads, runs, tasks and tools of one rollup, each: a heartbeat has 512 workloads at most, 512 tasks and 17 tools of each.
const MAX_OF_A_KIND: usize = 1_024;
/// So many are held before those that used least make room: names may have 1,024 bytes, which makes 25 MB at most.
const MAX_HELD: usize = 8 * MAX_OF_A_KIND;

/// What was done in one period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollup {
    version: u32,
    /// Heartbeats that ended in it.
    pub heartbeats: u64,
    /// The host as a whole, by its own counters: kernel, housekeeping and what nobody owns are in it.
    pub node: Activity,
    /// By workload, run, task and tool. Runs, their tasks and tools are another view of the workloads' activity: the two are never added up.
    pub subjects: Vec<Entry>,
}

/// One workload, run, task or tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Whose it is.
    pub subject: Subject,
    /// What it is called.
    #[serde(default)]
    pub label: Label,
    /// What it did.
    pub activity: Activity,
}

/// Adds a rollup up, heartbeat by heartbeat, of which it holds one at a time.
#[derive(Debug)]
pub struct Adding {
    period: Period,
    /// The last heartbeat, and its boot.
    before: Option<(BootId, Heartbeat)>,
    heartbeats: u64,
    node: Activity,
    subjects: BTreeMap<Subject, Held>,
}

/// A subject's activity so far.
#[derive(Debug, Default)]
struct Held {
    /// When the heartbeat ended that the label is of, and its sequence.
    labelled: (i64, u64),
    label: Label,
    activity: Activity,
}

impl Adding {
    /// Nothing so far.
    #[must_use]
    pub fn new(period: Period) -> Self {
        Self { period, before: None, heartbeats: 0, node: Activity::default(), subjects: BTreeMap::new() }
    }

    /// Takes up a heartbeat that only the next one is counted from.
    pub fn earlier(&mut self, boot: BootId, heartbeat: Heartbeat) {
        self.before = Some((boot, heartbeat));
    }

    /// Takes up the next heartbeat. They come by boot and sequence: each that ended in the period, and before it the stored one of its boot with the
    /// next lower sequence, which only the next one is counted from unless it ended in the period, too.
    pub fn heartbeat(&mut self, boot: BootId, heartbeat: Heartbeat) {
        let end_unix_ms = heartbeat.interval.as_ref().map_or(i64::MIN, |interval| interval.end_unix_ms);
        if self.period.holds(end_unix_ms) {
            let earlier = self.before.as_ref().filter(|(of, _)| *of == boot).map(|(_, earlier)| earlier);
            let between = between(boot, earlier, &heartbeat);
            self.heartbeats += 1;
            self.node.add(&between.node);
            for (subject, (label, added)) in between.subjects {
                let held = self.subjects.entry(subject).or_default();
                held.activity.add(&added);
                held.label(label, (end_unix_ms, heartbeat.sequence));
            }
            if self.subjects.len() > MAX_HELD {
                make_room(&mut self.subjects);
            }
        }
        self.before = Some((boot, heartbeat));
    }

    /// What it comes to; `None` if no heartbeat ended in the period.
    #[must_use]
    pub fn rollup(self) -> Option<Rollup> {
        (self.heartbeats > 0).then(|| Rollup::new(self.heartbeats, self.node, self.subjects))
    }
}

impl Held {
    fn label(&mut self, label: Label, at: (i64, u64)) {
        if at >= self.labelled {
            (self.label, self.labelled) = (label, at);
        }
    }
}

impl Rollup {
    fn new(heartbeats: u64, node: Activity, mut subjects: BTreeMap<Subject, Held>) -> Self {
        make_room(&mut subjects);
        let entries =
            subjects.into_iter().map(|(subject, held)| Entry { subject, label: held.label, activity: held.activity });
        Self { version: VERSION, heartbeats, node, subjects: entries.collect() }
    }

    /// What several periods of five minutes come to, which are given in their order; `None` of none.
    #[must_use]
    pub fn of_parts(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (mut heartbeats, mut node, mut subjects) = (0, Activity::default(), BTreeMap::<Subject, Held>::new());
        for (mut part, number) in parts.into_iter().zip(0_u64..) {
            part.node.note_flows();
            heartbeats += part.heartbeats;
            node.merge(&part.node);
            for entry in part.subjects {
                let held = subjects.entry(entry.subject).or_default();
                held.activity.merge(&entry.activity);
                held.label(entry.label, (0, number));
            }
            if subjects.len() > MAX_HELD {
                make_room(&mut subjects);
            }
        }
        (heartbeats > 0).then(|| Self::new(heartbeats, node, subjects))
    }

    /// The activity of one subject.
    #[must_use]
    pub fn of(&self, subject: &Subject) -> Option<&Activity> {
        self.subjects.iter().find(|entry| entry.subject == *subject).map(|entry| &entry.activity)
    }
}

/// Leaves of each kind those that used most CPU time; the others go on as one.
fn make_room(subjects: &mut BTreeMap<Subject, Held>) {
    let mut by_kind = BTreeMap::<_, Vec<_>>::new();
    for (subject, held) in subjects.iter().filter(|(subject, _)| !matches!(subject, Subject::Overflow { .. })) {
        let cpu_ns = held.activity.sum(Counter::Cpu).unwrap_or_default().0;
        by_kind.entry(subject.kind().to_owned()).or_default().push((std::cmp::Reverse(cpu_ns), subject.clone()));
    }
    for (kind, mut of_kind) in by_kind.into_iter().filter(|(_, of_kind)| of_kind.len() > MAX_OF_A_KIND) {
        of_kind.sort();
        for (_, subject) in of_kind.split_off(MAX_OF_A_KIND) {
            let Some(held) = subjects.remove(&subject) else { continue };
            let overflow = subjects.entry(Subject::Overflow { of: kind.clone() }).or_default();
            overflow.activity.merge(&held.activity);
        }
    }
}

#[cfg(test)]
mod tests;
