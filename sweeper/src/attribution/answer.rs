//! What is told of costs, to programs: in the shell and over HTTP alike.

use super::Question;
use costs::{Dimension, Kind, Line, Report};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// What machines cost through a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The begin, a full hour.
    pub from: Timestamp,
    /// The end, a full hour; none of it is in it.
    pub to: Timestamp,
    /// The dimensions.
    pub by: Vec<&'static str>,
    /// What is billed at known prices: all lines come to it.
    pub bill_micro_usd: u64,
    /// The seconds that this is for, over all machines.
    pub billed_seconds: u64,
    /// The seconds of which nobody knows what they cost, over all machines. They are in no amount.
    pub not_known_seconds: u64,
    /// Every line, those that cost most first.
    pub lines: Vec<Row>,
    /// Why money is not attributed, or not known.
    pub reasons: Vec<Reason>,
    #[serde(skip)]
    pub(crate) dimensions: Vec<Dimension>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The value of each dimension; none is *not known*, or that there is none.
    pub of: BTreeMap<&'static str, Option<String>>,
    /// On what it was spent.
    pub kind: Kind,
    /// Micro-dollars; none where it is not known.
    pub micro_usd: Option<u64>,
    /// Seconds of which nobody knows what they cost.
    pub not_known_seconds: u64,
}

/// Why money is not attributed, or not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// `unattributed` or `not_known`.
    pub kind: Kind,
    /// In words.
    pub why: String,
    /// How many machines it is of.
    pub machines: u64,
    /// How many seconds of them.
    pub seconds: u64,
    /// Micro-dollars that are not attributed for it.
    pub micro_usd: u64,
}

impl Answer {
    pub(super) fn of(question: &Question, report: Report) -> Self {
        let dimensions = question.by.dimensions().to_vec();
        let row = |line: Line| {
            let values = line.group.values.iter().map(|value| value.as_deref().map(str::to_owned));
            Row {
                of: dimensions.iter().map(|dimension| dimension.as_str()).zip(values).collect(),
                kind: line.group.kind,
                micro_usd: line.micros,
                not_known_seconds: line.not_known_s,
            }
        };
        let reason = |reason: costs::Reason| Reason {
            kind: reason.kind,
            why: reason.why.to_string(),
            machines: reason.machines,
            seconds: reason.seconds,
            micro_usd: reason.micros,
        };
        Self {
            from: question.from,
            to: question.to,
            by: dimensions.iter().map(|dimension| dimension.as_str()).collect(),
            bill_micro_usd: report.bill_micros,
            billed_seconds: report.billed_s,
            not_known_seconds: report.not_known_s,
            lines: report.lines.into_iter().map(row).collect(),
            reasons: report.reasons.into_iter().map(reason).collect(),
            dimensions,
        }
    }
}
