//! The sum of a machine's day.

use super::View;
use crate::{
    Hour, Kind, Place, Seen, Subject, Value, Weights,
    adding::{Sums, add_up},
};
use std::{collections::BTreeMap, sync::Arc};

/// A day of a machine, in one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaySum {
    view: View,
    pub(super) lines: BTreeMap<Of, u64>,
    /// Seconds and micro-dollars.
    pub(super) reasons: BTreeMap<(Kind, Arc<str>), (u64, u64)>,
    pub(super) bill_micros: u64,
    pub(super) billed_s: u64,
}

/// Of what a line is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Of {
    pub(super) version: i64,
    /// In the order of [`View::dimensions`].
    pub(super) values: Vec<Value>,
    pub(super) kind: Kind,
}

impl DaySum {
    /// Nothing so far.
    #[must_use]
    pub fn new(view: View) -> Self {
        Self { view, lines: BTreeMap::new(), reasons: BTreeMap::new(), bill_micros: 0, billed_s: 0 }
    }

    /// Takes an hour up. `version`: a name of the machine's version that the hour is of, by which it is found again whatever others are known by then.
    /// `seen`: what was seen of it in this view, and its subjects in the same order.
    pub fn add(&mut self, version: i64, hour: &Hour, seen: (&Seen, &[Subject]), weights: &Weights) {
        let view = self.view;
        add_up(&mut OfVersion { sum: self, version }, view, hour, seen, weights);
    }

    /// At least as many bytes as it has unpacked.
    pub(super) fn bytes(&self) -> usize {
        let of_line = |of: &Of| 32 + of.values.iter().flatten().map(|text| text.len() + 16).sum::<usize>();
        let of_reason = |(_, why): &(Kind, Arc<str>)| 32 + why.len();
        64 + self.lines.keys().map(of_line).sum::<usize>() + self.reasons.keys().map(of_reason).sum::<usize>()
    }

    pub(super) fn view(&self) -> View {
        self.view
    }
}

struct OfVersion<'a> {
    sum: &'a mut DaySum,
    version: i64,
}

impl Sums for OfVersion<'_> {
    fn bill(&mut self, micros: u64, billed_s: u64) {
        self.sum.bill_micros = self.sum.bill_micros.saturating_add(micros);
        self.sum.billed_s += billed_s;
    }

    fn line(&mut self, subject: Option<&Subject>, kind: Kind, amount: u64) {
        let nowhere = Place::default();
        let values = self.sum.view.dimensions().iter().map(|dimension| dimension.value(&nowhere, subject, &None));
        let of = Of { version: self.version, values: values.collect(), kind };
        let sum = self.sum.lines.entry(of).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn reason(&mut self, kind: Kind, why: &Arc<str>, seconds: u64, micros: u64) {
        let sum = self.sum.reasons.entry((kind, Arc::clone(why))).or_default();
        *sum = (sum.0 + seconds, sum.1.saturating_add(micros));
    }
}
