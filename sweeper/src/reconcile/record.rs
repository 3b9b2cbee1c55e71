//! What one decision about a finding rests on, kept for good.

use super::{Before, Change, Event, EventId, EventKind, next};
use crate::{
    detectors::{Class, replay},
    findings::FindingId,
    pricing::Cost,
    snapshot::Inputs,
};
use jiff::Timestamp;
use model::plan::ContentHash;
use recommender::rules::Input;
use serde::Serialize;

/// One decision about a finding, with all that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Of which finding.
    pub finding: FindingId,
    /// Its records are numbered from 1.
    pub number: u32,
    /// When it was decided.
    pub at: Timestamp,
    /// What it did to the finding.
    pub event: EventKind,
    /// Who detected.
    pub class: Class,
    /// Version of that detector.
    pub version: i32,
    /// What the detection depends on.
    pub inputs: Inputs,
    /// The finding as it was before, if it was open.
    pub before: Option<Before>,
    /// What the machine costs.
    pub cost: Cost,
    /// What the rule looked at that made, or refused, a plan at this moment; none if none was asked.
    pub asked: Option<Input>,
    /// What was decided.
    pub change: Change,
    /// The plan that was made, if one was.
    pub plan: Option<ContentHash>,
    /// It is of a version before, which sealed other content: only whether one was made can be compared.
    pub is_of_before: bool,
}

/// A decision made anew from what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// What this version decides.
    pub change: Change,
    /// The plan that it makes.
    pub plan: Option<ContentHash>,
    /// The same becomes of the finding, since the same moment and up to the same one, and the same plan is made; if not in the same words.
    pub is_same: bool,
    /// The words are the same, too.
    pub is_same_in_words: bool,
}

impl Record {
    /// Decides anew, from nothing but the record.
    #[must_use]
    pub fn replay(&self) -> Replayed {
        let answer = replay(self.class, &self.inputs);
        let change = next(self.before.as_ref(), &answer, self.inputs.was_asked());
        let plan = self.asked.as_ref().and_then(|input| input.plan().ok());
        let plan = plan.map(|plan| plan.content_hash().clone());
        let is_same_in_words = change == self.change;
        let is_same_plan = if self.is_of_before { plan.is_some() == self.plan.is_some() } else { plan == self.plan };
        let is_same = change.without_words() == self.change.without_words() && is_same_plan;
        Replayed { change, plan, is_same, is_same_in_words }
    }

    /// The event that it is of.
    #[must_use]
    pub fn event(&self) -> Event {
        let Self { finding, number, event, at, .. } = self;
        Event { id: EventId::new(finding, *number, *event), finding: finding.clone(), kind: *event, at: *at }
    }
}
