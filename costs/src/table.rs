//! Bills, split and added up by dimensions.

use crate::{
    By, Dimension, Group, Hour, Kind, Line, Place, Reason, Report, SECONDS_PER_HOUR, Seen, Subject, Value, Weights,
    adding::{Sums, add_up},
    kept::{Days, Whole, index},
    texts::{ByNumber, Texts},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Adds hours and kept days up.
#[derive(Debug)]
pub struct Costs {
    by: By,
    weights: Weights,
    texts: Texts,
    /// The dimensions' values by their numbers; micro-dollars, or seconds of what is not known.
    lines: HashMap<([u32; 2], Kind), u64, ByNumber>,
    reasons: BTreeMap<(Kind, Arc<str>), Summed>,
    machine: u64,
    bill_micros: u64,
    billed_s: u64,
    /// By the day's number.
    days: HashMap<i64, Value>,
}

#[derive(Debug, Default)]
struct Summed {
    machines: BTreeSet<u64>,
    seconds: u64,
    micros: u64,
}

impl Costs {
    /// Nothing so far.
    #[must_use]
    pub fn new(by: By, weights: Weights) -> Self {
        Self {
            by,
            weights,
            texts: Texts::default(),
            lines: HashMap::default(),
            reasons: BTreeMap::new(),
            machine: 0,
            bill_micros: 0,
            billed_s: 0,
            days: HashMap::new(),
        }
    }

    /// What follows is of this machine.
    pub fn machine(&mut self, number: u64) {
        self.machine = number;
    }

    /// Takes an hour of a machine up. `day`: its day, as it is to be shown; asked once for each. `subjects` are those of what was seen, in the same order.
    pub fn add(&mut self, place: &Place, hour: &Hour, seen: (&Seen, &[Subject]), day: impl FnOnce() -> Arc<str>) {
        let day = self.day(hour.start_s.div_euclid(24 * SECONDS_PER_HOUR), day);
        let (view, weights) = (self.by.view(), self.weights);
        add_up(&mut OfHour { costs: self, place, day }, view, hour, seen, &weights);
    }

    /// Takes kept sums of a day up: of those machines of which `whose` tells their number and what is known of each in the versions that the sum names,
    /// in that order. `number`: the day's, counted from 1970-01-01; `day`: as it is to be shown, asked once for each.
    pub fn take_up<'a>(
        &mut self,
        days: &Days,
        (number, day): (i64, impl FnOnce() -> Arc<str>),
        mut whose: impl FnMut(&str, &Whole) -> Option<(u64, Vec<&'a Place>)>,
    ) {
        let day = self.day(number, day);
        let dimensions = self.by.dimensions().to_vec();
        // Of each line the number of its text, where the dimension is one of subjects.
        let mut columns: [Option<(Vec<u32>, &[u32])>; 2] = [None, None];
        for (column, dimension) in columns.iter_mut().zip(&dimensions) {
            let numbered = |text| self.texts.number(text);
            *column = days.column(*dimension).map(|(texts, of_lines)| (texts.iter().map(numbered).collect(), of_lines));
        }
        for (key, whole, lines) in days.told() {
            let Some((machine, places)) = whose(key, whole) else { continue };
            self.machine(machine);
            self.bill(whole.bill_micros, whole.billed_s);
            for (kind, why, seconds, micros) in &whole.reasons {
                self.reason(*kind, why, (*seconds, *micros));
            }
            // What is of the machine and the day is the same of all lines of a version.
            let mut of_versions = Vec::with_capacity(places.len());
            for place in places {
                let mut values = [0; 2];
                for (value, dimension) in values.iter_mut().zip(&dimensions) {
                    *value = self.texts.number(&dimension.value(place, None, &day));
                }
                of_versions.push(values);
            }
            for at in lines {
                let (version, kind, amount) = days.line(at);
                let Some(mut values) = of_versions.get(version).copied() else { continue };
                for (value, column) in values.iter_mut().zip(&columns) {
                    if let Some((numbers, of_lines)) = column {
                        *value = numbers[index(of_lines[at])];
                    }
                }
                self.amount(values, kind, amount);
            }
        }
    }

    /// How many lines there are so far.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    fn day(&mut self, number: i64, day: impl FnOnce() -> Arc<str>) -> Value {
        self.days.entry(number).or_insert_with(|| Some(day())).clone()
    }

    fn bill(&mut self, micros: u64, billed_s: u64) {
        self.bill_micros = self.bill_micros.saturating_add(micros);
        self.billed_s += billed_s;
    }

    fn amount(&mut self, values: [u32; 2], kind: Kind, amount: u64) {
        let sum = self.lines.entry((values, kind)).or_default();
        *sum = sum.saturating_add(amount);
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
        let Self { by, texts, lines: added, reasons, bill_micros, billed_s, .. } = self;
        let width = by.dimensions().len();
        let mut lines = Vec::with_capacity(added.len());
        for ((values, kind), amount) in added {
            let values = values[..width].iter().map(|number| texts.value(*number)).collect();
            let (micros, not_known_s) = if kind == Kind::NotKnown { (None, amount) } else { (Some(amount), 0) };
            lines.push(Line { group: Group { values, kind }, micros, not_known_s });
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
        let not_known_s = lines.iter().map(|line| line.not_known_s).sum();
        Report { lines, bill_micros, billed_s, not_known_s, reasons }
    }

    /// By what it is added up.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        self.by.dimensions()
    }
}

/// An hour of a machine on a day.
struct OfHour<'a> {
    costs: &'a mut Costs,
    place: &'a Place,
    day: Value,
}

impl Sums for OfHour<'_> {
    fn bill(&mut self, micros: u64, billed_s: u64) {
        self.costs.bill(micros, billed_s);
    }

    fn line(&mut self, subject: Option<&Subject>, kind: Kind, amount: u64) {
        let mut values = [0; 2];
        for (number, dimension) in values.iter_mut().zip(self.costs.by.dimensions()) {
            *number = self.costs.texts.number(&dimension.value(self.place, subject, &self.day));
        }
        self.costs.amount(values, kind, amount);
    }

    fn reason(&mut self, kind: Kind, why: &Arc<str>, seconds: u64, micros: u64) {
        self.costs.reason(kind, why, (seconds, micros));
    }
}

#[cfg(test)]
mod tests;
