//! Refuses a machine that has not said within the last five seconds that nobody works on it: in answer to this action's own question, on the boot that the
//! finding is of.

use jiff::{SignedDuration, Timestamp};
use model::plan::ContentHash;
use serde::Serialize;

use super::{Moment, OnMachine};
use crate::Refusal;

/// An answer is no older.
pub(super) const FRESH: SignedDuration = SignedDuration::from_secs(5);

/// What a node answered when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveSample {
    /// For which plan it was asked.
    pub plan: ContentHash,
    /// On which boot it answered.
    pub boot: String,
    /// On which boot the finding's evidence is.
    pub boot_of_evidence: String,
    /// When its answer came, by the database's clock.
    pub received_at: Timestamp,
    /// Until when it speaks, by the node's own clock; none if it does not say.
    pub ended_at: Option<Timestamp>,
    /// Whether it names the question that was asked for this action, which is asked once.
    pub is_answer_to_this: bool,
    /// What follows from its answer and all that came before.
    pub verdict: LiveVerdict,
    /// The rules by which its agent tells work from housekeeping.
    pub rules_version: String,
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveVerdict {
    /// Nobody works there.
    Idle,
    /// Somebody does, or nobody knows: why not, in words.
    NotIdle(String),
    /// Nothing of the job that it was asked about has run since that was found.
    Stuck,
    /// Something has, or nobody knows: why not, in words.
    NotStuck(String),
}

pub(crate) fn guard(moment: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    let live = to_this(moment, machine.live)?;
    match &live.verdict {
        LiveVerdict::Idle => is_fresh(moment, live),
        LiveVerdict::NotIdle(why) | LiveVerdict::NotStuck(why) => Err(Refusal::NotIdle { why: why.clone() }),
        LiveVerdict::Stuck => Err(Refusal::NotIdle { why: "a job of it was asked about, not the machine".to_owned() }),
    }
}

/// The answer, if it is one to this action's question and of the boot that the finding is of.
pub(super) fn to_this<'a>(moment: &Moment<'_>, live: Option<&'a LiveSample>) -> Result<&'a LiveSample, Refusal> {
    let live = live.ok_or(Refusal::NoLiveSample)?;
    if live.plan != *moment.plan.content_hash() || !live.is_answer_to_this {
        return Err(Refusal::LiveSampleOfAnother);
    }
    if live.boot != live.boot_of_evidence {
        return Err(Refusal::BootChanged);
    }
    Ok(live)
}

/// Whether an answer came just now.
pub(super) fn is_fresh(moment: &Moment<'_>, live: &LiveSample) -> Result<(), Refusal> {
    let age = moment.now.duration_since(live.received_at);
    if SignedDuration::ZERO <= age && age <= FRESH { Ok(()) } else { Err(Refusal::LiveSampleStale) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::{NOW, Sample};

    fn with(change: impl FnOnce(&mut LiveSample)) -> Result<(), Refusal> {
        Sample::with(|sample| change(sample.live.as_mut().expect("a live sample")))
    }

    #[test]
    fn nobody_is_stopped_unasked() {
        assert_eq!(Sample::with(|sample| sample.live = None), Err(Refusal::NoLiveSample));
    }

    #[test]
    fn an_answer_is_to_one_question_about_one_plan() {
        assert_eq!(with(|live| live.is_answer_to_this = false), Err(Refusal::LiveSampleOfAnother));
        let other = || "0".repeat(64).try_into().expect("a hash");
        assert_eq!(with(|live| live.plan = other()), Err(Refusal::LiveSampleOfAnother));
    }

    #[test]
    fn an_answer_is_of_the_boot_that_was_found_idle() {
        assert_eq!(with(|live| live.boot = "0b1f".to_owned()), Err(Refusal::BootChanged));
    }

    #[test]
    fn work_voids_it() {
        let why = "CPU time of workloads".to_owned();
        assert_eq!(with(|live| live.verdict = LiveVerdict::NotIdle(why.clone())), Err(Refusal::NotIdle { why }));
        assert!(with(|live| live.verdict = LiveVerdict::Stuck).is_err(), "a job's word is none of its machine");
    }

    #[test]
    fn an_answer_is_five_seconds_old_at_most_and_never_of_the_future() {
        for (milliseconds, passes) in [(0, true), (5_000, true), (5_001, false), (60_000, false), (-1, false)] {
            let received_at = NOW - SignedDuration::from_millis(milliseconds);
            let expected = if passes { Ok(()) } else { Err(Refusal::LiveSampleStale) };
            assert_eq!(with(|live| live.received_at = received_at), expected, "{milliseconds}");
        }
    }
}
