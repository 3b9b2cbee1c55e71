//! One machine's hour, split over what used it.
//!
//! The rule is the one that OpenCost specifies for the containers of a node (<https://www.opencost.io/docs/specification>): what the machine cost is first
//! divided into a part for its cores, one for its memory and one for its GPUs, in proportion to what these cost by the same list of prices everywhere
//! ([`Weights`]); each part is then split over what used, or had reserved, that resource. So what a run costs is what its tasks cost, and shares of different
//! resources are never compared with each other.

use crate::apportion;
use std::sync::Arc;

/// What resources cost in proportion to each other, in micro-dollars an hour. Only their ratios matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// A core.
    pub core: u32,
    /// A GiB of memory.
    pub gib: u32,
    /// A GPU.
    pub gpu: u32,
}

/// OpenCost's own: <https://www.opencost.io/docs/configuration/on-prem>.
impl Default for Weights {
    fn default() -> Self {
        Self { core: 31_611, gib: 4_237, gpu: 950_000 }
    }
}

/// How much of a resource there was in the time in which it was measured, and how much of that was in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// What there was: nanoseconds of cores or GPUs, or KiB of memory times milliseconds.
    pub capacity: u64,
    /// What was in use, by whomever.
    pub in_use: u64,
    /// For how long it was measured, in milliseconds.
    pub ms: u64,
}

/// What one subject used, in the units of [`Measure`]; what is not there was not measured, and is then in use by nobody that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Time of cores.
    pub cpu_ns: Option<u64>,
    /// Memory times time.
    pub memory_kib_ms: Option<u64>,
    /// Time of GPUs.
    pub gpu_ns: Option<u64>,
    /// Time of cores that was reserved for it, used or not; none if that is not known, or nothing was.
    pub reserved_cpu_ns: Option<u64>,
    /// Memory times time, likewise.
    pub reserved_memory_kib_ms: Option<u64>,
}

/// What an agent saw of an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing, and why.
    Not(Arc<str>),
    /// So much of it.
    Measured {
        /// Seconds.
        seconds: u64,
        /// Cores.
        cpu: Measure,
        /// Memory; none if it was not measured: then the machine's cost is that of its other resources.
        memory: Option<Measure>,
        /// GPUs; a capacity of zero where there are none.
        gpu: Measure,
        /// What each subject used.
        used: Vec<Used>,
    },
}

/// What a part of a bill is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    /// What this subject used, by its place among all.
    Used(usize),
    /// What was reserved for this subject and not used by it.
    Reserved(usize),
    /// What was in use, and no subject is known to have used.
    Unowned,
    /// What nobody used.
    Idle,
    /// What nobody saw.
    Unattributed,
}

/// A part of a bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// For what.
    pub to: To,
    /// How much.
    pub micros: u64,
}

/// Splits the bill of so many billed seconds. The parts come to exactly the bill; none is zero.
#[must_use]
pub fn split(bill_micros: u64, billed_s: u64, seen: &Seen, weights: &Weights) -> Vec<Part> {
    let whole = vec![Part { to: To::Unattributed, micros: bill_micros }];
    let parts = match seen {
        Seen::Not(_) => whole,
        Seen::Measured { seconds, cpu, memory, gpu, used } => {
            // An agent that saw more than was billed saw all of it.
            let seen_s = (*seconds).min(billed_s);
            let columns = columns(cpu, memory.as_ref(), gpu, used, weights);
            let value: u128 = columns.iter().map(|column| column.value).sum();
            if value == 0 || seen_s == 0 { whole } else { by_resource(bill_micros, (seen_s, billed_s), &columns) }
        }
    };
    merged(parts)
}

/// One resource.
struct Column {
    /// What it costs, in proportion to the others, while it was seen.
    value: u128,
    /// What each part of it is for, and how much that is.
    amounts: Vec<(To, u64)>,
}

/// Nanoseconds of cores are to KiB·ms as 1,000,000 to 1,048,576 where one costs as much an hour as a GiB: 3.6e12 of the one and 2^20 × 3.6e6 of the other are an hour.
const OF_TIME: u128 = 1 << 20;
const OF_MEMORY: u128 = 1_000_000;

fn columns(cpu: &Measure, memory: Option<&Measure>, gpu: &Measure, used: &[Used], weights: &Weights) -> Vec<Column> {
    let mut columns = vec![
        column(cpu, OF_TIME * u128::from(weights.core), used, |used| (used.cpu_ns, used.reserved_cpu_ns)),
        column(gpu, OF_TIME * u128::from(weights.gpu), used, |used| (used.gpu_ns, None)),
    ];
    let of_memory = |used: &Used| (used.memory_kib_ms, used.reserved_memory_kib_ms);
    columns.extend(memory.map(|memory| column(memory, OF_MEMORY * u128::from(weights.gib), used, of_memory)));
    columns
}

fn column(measure: &Measure, unit: u128, used: &[Used], of: impl Fn(&Used) -> (Option<u64>, Option<u64>)) -> Column {
    let (mut amounts, mut told, mut taken) = (Vec::new(), 0_u64, 0_u64);
    for (at, subject) in used.iter().enumerate() {
        let (used, reserved) = of(subject);
        let used = used.unwrap_or(0);
        let unused = reserved.unwrap_or(0).saturating_sub(used);
        told = told.saturating_add(used);
        taken = taken.saturating_add(used).saturating_add(unused);
        amounts.extend([(To::Used(at), used), (To::Reserved(at), unused)]);
    }
    // What samples a moment apart may differ by makes at worst nothing idle.
    let unowned = measure.in_use.saturating_sub(told);
    let idle = measure.capacity.saturating_sub(taken.saturating_add(unowned));
    amounts.extend([(To::Unowned, unowned), (To::Idle, idle)]);
    // What there was in a millisecond, times a number that is the same of all resources.
    let value =
        if measure.ms == 0 { 0 } else { unit.saturating_mul(u128::from(measure.capacity)) / u128::from(measure.ms) };
    Column { value, amounts }
}

/// First what was not seen, and the resources of what was; then each resource.
fn by_resource(bill_micros: u64, (seen_s, billed_s): (u64, u64), columns: &[Column]) -> Vec<Part> {
    let value: u128 = columns.iter().map(|column| column.value).sum();
    let unseen_s = u128::from(billed_s - seen_s);
    let mut weights = vec![value.saturating_mul(unseen_s)];
    weights.extend(columns.iter().map(|column| column.value.saturating_mul(u128::from(seen_s))));
    let mut first = apportion(bill_micros, &weights);
    let mut parts = vec![Part { to: To::Unattributed, micros: first.remove(0) }];
    for (column, micros) in columns.iter().zip(first) {
        let amounts: Vec<u128> = column.amounts.iter().map(|(_, amount)| u128::from(*amount)).collect();
        let split = apportion(micros, &amounts);
        parts.extend(column.amounts.iter().zip(split).map(|((to, _), micros)| Part { to: *to, micros }));
    }
    parts
}

fn merged(mut parts: Vec<Part>) -> Vec<Part> {
    parts.retain(|part| part.micros > 0);
    parts.sort_by_key(|part| part.to);
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match merged.last_mut().filter(|last| last.to == part.to) {
            Some(last) => last.micros += part.micros,
            None => merged.push(part),
        }
    }
    merged
}

#[cfg(test)]
pub(crate) mod tests;
