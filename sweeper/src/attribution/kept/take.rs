//! What of kept days an answer is made of.

use super::{DAY_S, days_within, fingerprint::Fingerprints};
use crate::{
    attribution::{
        Question,
        bounds::{Bounds, NotAnswered},
        day_of,
        machines::Machine,
    },
    store::Store,
};
use costs::{Costs, Days, Dimension, Weights};
use std::{collections::HashMap, ops::Range};

/// Which days of which machines were taken up.
#[derive(Debug)]
pub(in crate::attribution) struct Taken {
    days: Range<i64>,
    /// By machine and day.
    taken: Vec<bool>,
}

impl Taken {
    fn nothing(days: Range<i64>, machines: usize) -> Self {
        let count = usize::try_from(days.end - days.start).unwrap_or(0);
        Self { days, taken: vec![false; count * machines] }
    }

    fn of(&self, machine: usize) -> &[bool] {
        let count = usize::try_from(self.days.end - self.days.start).unwrap_or(0);
        &self.taken[machine * count..(machine + 1) * count]
    }

    /// Notes a day of a machine; false if it was noted before.
    fn note(&mut self, machine: usize, day: i64) -> bool {
        let count = usize::try_from(self.days.end - self.days.start).unwrap_or(0);
        let at = machine * count + usize::try_from(day - self.days.start).unwrap_or(0);
        !std::mem::replace(&mut self.taken[at], true)
    }

    /// The stretches of a time that are left of the machine at this place.
    pub(in crate::attribution) fn left(&self, machine: usize, from_s: i64, to_s: i64) -> Vec<(i64, i64)> {
        let (mut left, mut at_s) = (Vec::new(), from_s);
        let mut put = |from_s: i64, to_s: i64| {
            if from_s < to_s {
                left.push((from_s, to_s));
            }
        };
        for (day, _) in self.days.clone().zip(self.of(machine)).filter(|(_, is_taken)| **is_taken) {
            put(at_s, day * DAY_S);
            at_s = (day + 1) * DAY_S;
        }
        put(at_s, to_s);
        left
    }

    /// How many days of machines were taken up.
    pub(in crate::attribution) fn count(&self) -> usize {
        self.taken.iter().filter(|is_taken| **is_taken).count()
    }
}

/// Takes up what is kept and right of the whole days that are asked about.
///
/// # Errors
/// If the database does not answer, or the answer would be too long. What is kept and cannot be read is as if it were not kept.
pub(in crate::attribution) async fn take_up(
    store: &Store,
    question: &Question,
    machines: &[Machine],
    (weights, now_s): (Weights, i64),
    (costs, bounds): (&mut Costs, Bounds),
) -> Result<Taken, NotAnswered> {
    let days = days_within(question.from.as_second(), question.to.as_second(), now_s);
    let mut taken = Taken::nothing(days.clone(), machines.len());
    if days.is_empty() {
        return Ok(taken);
    }
    let by_key: HashMap<&str, usize> = machines.iter().enumerate().map(|(at, machine)| (&*machine.key, at)).collect();
    let mut fingerprints = Fingerprints::new(weights);
    let view = question.by.view();
    let dimensions: Vec<Dimension> =
        question.by.dimensions().iter().copied().filter(|dimension| dimension.is_of_subjects()).collect();
    // Before what is kept: what changes from here on is noted as well, and the answer is that of this moment.
    let changed = store.changed_cost_days(days.start..=days.end - 1).await?;
    for day in days {
        let changed = changed.get(&day);
        for packed in store.cost_days(day, view, &dimensions).await? {
            let kept = match Days::unpack(&packed, &dimensions) {
                Ok(kept) => kept,
                Err(error) => {
                    tracing::warn!(day, %error, "a kept day of costs cannot be read; its rollups are");
                    continue;
                }
            };
            costs.take_up(&kept, (day, || day_of(day * DAY_S).into()), |key, whole| {
                let at = *by_key.get(key)?;
                let machine = &machines[at];
                let is_right = changed.is_none_or(|changed| !changed.contains_key(key))
                    && fingerprints.of(machine, day) == Some(whole.fingerprint);
                let places = is_right.then(|| whole.versions.iter().map(|name| machine.place_of(*name)))?;
                let places = places.collect::<Option<Vec<_>>>()?;
                taken.note(at, day).then_some((machine.number, places))
            });
            bounds.check_lines(costs)?;
            tokio::task::yield_now().await;
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_all_but_the_days_that_were_taken() {
        let mut taken = Taken::nothing(10..13, 2);
        let (from_s, to_s) = (10 * DAY_S - 3_600, 14 * DAY_S);
        assert_eq!(taken.left(0, from_s, to_s), [(from_s, to_s)]);
        assert!(taken.note(1, 10) && taken.note(1, 12) && !taken.note(1, 10));
        assert_eq!(taken.left(0, from_s, to_s), [(from_s, to_s)]);
        let expected = [(from_s, 10 * DAY_S), (11 * DAY_S, 12 * DAY_S), (13 * DAY_S, to_s)];
        assert_eq!(taken.left(1, from_s, to_s), expected);
        assert!(taken.note(1, 11));
        assert_eq!(taken.left(1, 10 * DAY_S, 13 * DAY_S), []);
        assert_eq!(taken.count(), 3);
        assert_eq!(Taken::nothing(5..5, 1).left(0, 0, 3_600), [(0, 3_600)]);
    }
}
