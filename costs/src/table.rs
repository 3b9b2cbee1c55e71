//! Bills, split and added up by dimensions.

use crate::{
    By, Dimension, Hour, Place, SECONDS_PER_HOUR, Seen, Subject, To, Value, Weights,
    split::{Part, split},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// What money was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What workloads used.
    Used,
    /// What was reserved for them and not used.
    ReservedUnused,
    /// What would run on a machine that nobody uses: housekeeping, kernel threads, the agent.
    System,
    /// What was in use, and no workload is known to have used.
    Unowned,
    /// What nobody used.
    Idle,
    /// What no agent saw.
    Unattributed,
    /// Time whose cost is not known; it has no amount.
    NotKnown,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Used, Self::ReservedUnused, Self::System, Self::Unowned, Self::Idle, Self::Unattributed, Self::NotKnown];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::ReservedUnused => "reserved_unused",
            Self::System => "system",
            Self::Unowned => "unowned",
            Self::Idle => "idle",
            Self::Unattributed => "unattributed",
            Self::NotKnown => "not_known",
        }
    }
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The dimensions' values, in their order; none is *not known*.
    pub values: Vec<Value>,
    /// On what it was spent.
    pub kind: Kind,
}

/// What a line comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Of what.
    pub group: Group,
    /// Micro-dollars; none of time whose cost is not known.
    pub micros: Option<u64>,
    /// Seconds whose cost is not known.
    pub not_known_s: u64,
}

/// Why money is not attributed, or not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// [`Kind::Unattributed`] or [`Kind::NotKnown`].
    pub kind: Kind,
    /// In words.
    pub why: Arc<str>,
    /// How many machines it is of.
    pub machines: u64,
    /// How many seconds of them.
    pub seconds: u64,
    /// Micro-dollars; zero of what is not known.
    pub micros: u64,
}

/// Costs, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every line, those that cost most first. Their amounts come to [`Self::bill_micros`].
    pub lines: Vec<Line>,
    /// The bill, summed up by itself: hour by hour, before it was split.
    pub bill_micros: u64,
    /// Seconds that are billed at a known price.
    pub billed_s: u64,
    /// Seconds whose cost is not known.
    pub not_known_s: u64,
    /// Why money is not attributed or not known, what most seconds are of first.
    pub reasons: Vec<Reason>,
}

/// Adds hours up.
#[derive(Debug)]
pub struct Costs {
    by: By,
    weights: Weights,
    lines: HashMap<[Value; 2], BTreeMap<Kind, (u64, u64)>>,
    reasons: BTreeMap<(Kind, Arc<str>), Summed>,
    machine: u64,
    bill_micros: u64,
    billed_s: u64,
    not_known_s: u64,
    days: HashMap<i64, Value>,
}

#[derive(Debug, Default)]
struct Summed {
    machines: BTreeSet<u64>,
    seconds: u64,
    micros: u64,
}

/// Why a part of an hour is not attributed of which the agent saw the others.
const PARTLY: &str = "no agent reported in this part of the hour";

impl Costs {
    /// Nothing so far.
    #[must_use]
    pub fn new(by: By, weights: Weights) -> Self {
        Self {
            by,
            weights,
            lines: HashMap::new(),
            reasons: BTreeMap::new(),
            machine: 0,
            bill_micros: 0,
            billed_s: 0,
            not_known_s: 0,
            days: HashMap::new(),
        }
    }

    /// What follows is of this machine.
    pub fn machine(&mut self, number: u64) {
        self.machine = number;
    }

    /// Takes an hour of a machine up. `day`: its day, as it is to be shown; asked once for each. `subjects` are those of what was seen, in the same order.
    pub fn add(
        &mut self,
        place: &Place,
        hour: &Hour,
        (seen, subjects): (&Seen, &[Subject]),
        day: impl FnOnce() -> Arc<str>,
    ) {
        let number = hour.start_s.div_euclid(24 * SECONDS_PER_HOUR);
        let day = self.days.entry(number).or_insert_with(|| Some(day())).clone();
        for (why, seconds) in &hour.not_known {
            self.not_known_s += seconds;
            self.line(place, None, &day, Kind::NotKnown, (0, *seconds));
            self.reason(Kind::NotKnown, why, (*seconds, 0));
        }
        if hour.billed_s == 0 {
            return;
        }
        self.bill_micros = self.bill_micros.saturating_add(hour.micros);
        self.billed_s += hour.billed_s;
        // It is not kept which seconds of an hour an agent saw: those that are billed at a known price are seen as much as the others.
        let all_s = hour.billed_s + hour.not_known.iter().map(|(_, seconds)| seconds).sum::<u64>();
        for Part { to, micros } in split(hour.micros, all_s, seen, &self.weights) {
            let (kind, subject) = match to {
                To::Used(at) => {
                    let subject = subjects.get(at);
                    (if subject.is_some_and(|of| of.is_system) { Kind::System } else { Kind::Used }, subject)
                }
                To::Reserved(at) => (Kind::ReservedUnused, subjects.get(at)),
                To::Unowned => (Kind::Unowned, None),
                To::Idle => (Kind::Idle, None),
                To::Unattributed => (Kind::Unattributed, None),
            };
            self.line(place, subject, &day, kind, (micros, 0));
            if kind == Kind::Unattributed {
                let (why, seen_s) = match seen {
                    Seen::Not(why) => (Arc::clone(why), 0),
                    Seen::Measured { seconds, .. } => (PARTLY.into(), *seconds),
                };
                self.reason(kind, &why, (all_s.saturating_sub(seen_s).min(hour.billed_s), micros));
            }
        }
    }

    fn line(
        &mut self,
        place: &Place,
        subject: Option<&Subject>,
        day: &Value,
        kind: Kind,
        (micros, not_known_s): (u64, u64),
    ) {
        // What would run anyway is told as one.
        let subject = subject.filter(|of| !of.is_system || self.by.is_of_workloads());
        let mut values: [Value; 2] = [None, None];
        for (value, dimension) in values.iter_mut().zip(self.by.dimensions()) {
            *value = dimension.value(place, subject, day);
        }
        let sums = self.lines.entry(values).or_default().entry(kind).or_default();
        *sums = (sums.0.saturating_add(micros), sums.1 + not_known_s);
    }

    fn reason(&mut self, kind: Kind, why: &Arc<str>, (seconds, micros): (u64, u64)) {
        let machine = self.machine;
        let sum = self.reasons.entry((kind, Arc::clone(why))).or_default();
        sum.machines.insert(machine);
        sum.seconds += seconds;
        sum.micros = sum.micros.saturating_add(micros);
    }

    /// What it comes to.
    #[must_use]
    pub fn report(self) -> Report {
        let Self { by, lines: added, reasons, bill_micros, billed_s, not_known_s, .. } = self;
        let width = by.dimensions().len();
        let mut lines = Vec::new();
        for (values, sums) in added {
            for (kind, (micros, not_known_s)) in sums {
                let group = Group { values: values[..width].to_vec(), kind };
                lines.push(Line { group, micros: (kind != Kind::NotKnown).then_some(micros), not_known_s });
            }
        }
        let order = |line: &Line| {
            (std::cmp::Reverse((line.micros, line.not_known_s)), line.group.kind, line.group.values.clone())
        };
        lines.sort_by_cached_key(order);
        let reason = |((kind, why), sum): ((Kind, Arc<str>), Summed)| {
            let machines = u64::try_from(sum.machines.len()).unwrap_or(u64::MAX);
            Reason { kind, why, machines, seconds: sum.seconds, micros: sum.micros }
        };
        let mut reasons: Vec<Reason> = reasons.into_iter().map(reason).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.seconds));
        Report { lines, bill_micros, billed_s, not_known_s, reasons }
    }

    /// By what it is added up.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        self.by.dimensions()
    }
}

#[cfg(test)]
mod tests;
