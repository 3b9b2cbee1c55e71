//! One round over all days that may be kept, the newest first: which are not right, and what each comes to.

use super::{DAY_S, PARTS, days_within, fingerprint::Fingerprints, part_of};
use crate::{
    attribution::{
        Settings,
        hours::{Batch, Reported},
        machines::{self, Machine},
    },
    store::{CostDay, DayPart, Store, StoreError, corrupt},
};
use costs::{DaySum, Days, Fingerprint, KeptDay, Packed, Row, View, Weights, fingerprints, pack};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
    time::Duration,
};

/// What is known at its begin: what is learnt meanwhile is for the next one.
#[derive(Debug)]
pub(super) struct Round<'a> {
    store: &'a Store,
    now_s: i64,
    weights: Weights,
    machines: Vec<Machine>,
    /// By part, machines by their places.
    parts: BTreeMap<i64, Vec<usize>>,
    fingerprints: Fingerprints,
    /// Those that are left.
    days: Range<i64>,
    /// Of the day that is looked at.
    due: Vec<Due>,
}

/// A part of a day that is to be added up, as a whole or a part of it.
#[derive(Debug)]
pub(super) struct Due {
    of: DayPart,
    /// The machines of which there is something to tell, and on what it rests.
    expected: BTreeMap<Arc<str>, (usize, Fingerprint)>,
    /// Those whose day is not kept, or not right.
    wrong: BTreeSet<Arc<str>>,
    /// The notes of nodes of this part.
    changed: BTreeMap<String, i64>,
}

impl<'a> Round<'a> {
    /// Forgets what is kept of days whose rollups are not, and sees which machines there are.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) async fn begin(store: &'a Store, settings: &Settings, retention: Duration) -> Result<Self, StoreError> {
        let now_s = store.now().await?.as_second();
        let retention_s = i64::try_from(retention.as_secs()).unwrap_or(i64::MAX);
        let days = days_within(now_s.saturating_sub(retention_s).max(0), now_s, now_s);
        store.forget_cost_days_before(days.start).await?;
        let machines = if days.is_empty() {
            Vec::new()
        } else {
            machines::read(store, settings, days.start * DAY_S, now_s).await?
        };
        let mut parts = BTreeMap::<i64, Vec<usize>>::new();
        for (at, machine) in machines.iter().enumerate() {
            parts.entry(part_of(&machine.key)).or_default().push(at);
        }
        let weights = settings.costs.weights().unwrap_or_default();
        let fingerprints = Fingerprints::new(weights);
        Ok(Self { store, now_s, weights, machines, parts, fingerprints, days, due: Vec::new() })
    }

    /// What is to be added up next; none if all that is kept is right.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) async fn next(&mut self) -> Result<Option<Due>, StoreError> {
        while self.due.is_empty() && !self.days.is_empty() {
            self.days.end -= 1;
            self.due = self.due_on(self.days.end).await?;
        }
        Ok(self.due.pop())
    }

    async fn due_on(&mut self, day: i64) -> Result<Vec<Due>, StoreError> {
        // Before any rollup is read: what changes from here on has another note.
        let changed = self.store.changed_cost_days(day..=day).await?.remove(&day).unwrap_or_default();
        let mut changed_of = BTreeMap::<i64, BTreeMap<String, i64>>::new();
        for (node, mark) in changed {
            changed_of.entry(part_of(&node)).or_default().insert(node, mark);
        }
        let mut kept = self.store.kept_cost_days(day).await?;
        let mut due = Vec::new();
        for part in 0..i64::from(PARTS) {
            let of = DayPart { day, part };
            let changed = changed_of.remove(&part).unwrap_or_default();
            let mut expected = BTreeMap::new();
            for at in self.parts.get(&part).into_iter().flatten() {
                let machine = &self.machines[*at];
                if let Some(fingerprint) = self.fingerprints.of(machine, day) {
                    expected.insert(Arc::clone(&machine.key), (*at, fingerprint));
                }
            }
            // What cannot be read is as if it were not kept.
            let is_kept = kept.remove(&of).map(|machines| fingerprints(&machines).unwrap_or_default());
            let kept: HashMap<String, Fingerprint> = is_kept.iter().flatten().cloned().collect();
            let is_wrong = |key: &str, of: Fingerprint| kept.get(key) != Some(&of) || changed.contains_key(key);
            let wrong: BTreeSet<Arc<str>> =
                expected.iter().filter(|(key, (_, of))| is_wrong(key, *of)).map(|(key, _)| Arc::clone(key)).collect();
            if !wrong.is_empty() || kept.keys().any(|key| !expected.contains_key(&**key)) {
                due.push(Due { of, expected, wrong, changed });
            }
            // A large fleet's histories are long.
            tokio::task::yield_now().await;
        }
        Ok(due)
    }

    /// Adds up what is due, and says how many days of machines that were: none if what it rests on changed meanwhile, which leaves them for the next round.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) async fn make(&self, due: &Due) -> Result<u64, StoreError> {
        let before = self.store.cost_day(due.of).await?;
        let mut rows = before.as_ref().and_then(carried).unwrap_or_default();
        for row in rows.values_mut() {
            let is_right =
                |key: &Arc<str>, day: &KeptDay| due.expected.get(key).is_some_and(|(_, of)| *of == day.fingerprint);
            row.retain(|key, day| is_right(key, day) && !due.wrong.contains(key));
        }
        let of_any = |key: &Arc<str>| rows.values().all(|row| row.contains_key(key)) && rows.len() == View::ALL.len();
        let missing: Vec<Arc<str>> = due.expected.keys().filter(|key| !of_any(key)).cloned().collect();
        for (view, key, day) in self.sums(due, &missing).await? {
            rows.entry(view).or_default().insert(key, day);
        }
        let mut packed = BTreeMap::<View, Packed>::new();
        for view in View::ALL {
            let row = rows.remove(&view).unwrap_or_default();
            packed
                .insert(view, pack(view, &row).map_err(|error| corrupt("a day of costs that was to be kept", error))?);
        }
        let nodes: Vec<String> = due.expected.keys().map(|key| key.to_string()).collect();
        match self.store.put_cost_day(due.of, &packed, before.as_ref(), &nodes, &due.changed).await? {
            true => Ok(u64::try_from(missing.len()).unwrap_or(u64::MAX)),
            false => Ok(0),
        }
    }

    /// What the day comes to of each of these machines, in both views.
    async fn sums(&self, due: &Due, machines: &[Arc<str>]) -> Result<Vec<(View, Arc<str>, KeptDay)>, StoreError> {
        let from_s = due.of.day * DAY_S;
        let mut sums = HashMap::<u64, Option<BTreeMap<View, DaySum>>>::new();
        let mut batch = Batch::default();
        let mut left = machines.iter().peekable();
        while let Some(key) = left.next() {
            let Some((at, _)) = due.expected.get(key) else { continue };
            batch.push(&self.machines[*at], (from_s, from_s + DAY_S));
            if batch.is_full() || left.peek().is_none() {
                let take = |machine: &Machine, hour: &costs::Hour, reported: &Reported| {
                    let sums = sums.entry(machine.number).or_insert_with(|| Some(nothing()));
                    // Of a day of which an hour cannot be read no sum is kept: a later version reads it, perhaps.
                    let Some(of_views) = sums.as_mut().filter(|_| !matches!(reported, Reported::Unreadable)) else {
                        *sums = None;
                        return;
                    };
                    let Some(version) = machine.name(hour.version) else { return };
                    for (view, sum) in of_views {
                        let (seen, subjects) = reported.seen(*view, machine, hour, self.now_s);
                        sum.add(version, hour, (&seen, &subjects), &self.weights);
                    }
                };
                batch.each(self.store, take).await?;
            }
        }
        let mut days = Vec::with_capacity(machines.len() * View::ALL.len());
        for key in machines {
            let Some((at, fingerprint)) = due.expected.get(key) else { continue };
            let mut of_views = sums.remove(&self.machines[*at].number).unwrap_or_else(|| Some(nothing()));
            for view in View::ALL {
                let sum = of_views.as_mut().and_then(|of_views| of_views.remove(&view));
                days.push((view, Arc::clone(key), KeptDay::new(*fingerprint, sum)));
            }
        }
        Ok(days)
    }
}

fn nothing() -> BTreeMap<View, DaySum> {
    View::ALL.map(|view| (view, DaySum::new(view))).into()
}

/// What is kept already, as it was before it was packed; none if any of it cannot be read.
fn carried(kept: &CostDay) -> Option<BTreeMap<View, Row>> {
    kept.views.iter().map(|(view, packed)| Some((*view, Days::row(*view, packed).ok()?))).collect()
}
