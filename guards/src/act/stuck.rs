//! Refuses a job of which the agent on its machine has not said within the last five seconds that it has not run since it was found: in answer to this action's own question, on the boot that the finding is of.

use super::{
    LiveSample, LiveVerdict, Moment, OnJob,
    live::{FRESH, is_fresh, to_this},
};
use crate::{JobRefusal, Refusal};
use model::plan::Condition;

pub(crate) fn guard(moment: &Moment<'_>, on: &OnJob<'_>) -> Result<(), Refusal> {
    let live = to_this(moment, on.live)?;
    match &live.verdict {
        LiveVerdict::Stuck => is_of_now(live).and_then(|()| is_fresh(moment, live)),
        LiveVerdict::NotStuck(why) | LiveVerdict::NotIdle(why) => Err(JobRefusal::NotStuck { why: why.clone() }.into()),
        LiveVerdict::Idle => {
            Err(JobRefusal::NotStuck { why: "its machine was asked about, not the job".to_owned() }.into())
        }
    }
}

/// What comes just now may tell of before: an answer speaks until the moment that it comes in, or a clock is wrong.
fn is_of_now(live: &LiveSample) -> Result<(), Refusal> {
    let ended_at = live
        .ended_at
        .ok_or_else(|| JobRefusal::NotKnown { what: "until when its agent's answer speaks".to_owned() })?;
    let apart = live.received_at.duration_since(ended_at).abs();
    if apart <= FRESH { Ok(()) } else { Err(JobRefusal::NotOfNow { ended_at, received_at: live.received_at }.into()) }
}

/// What was approved is a standstill since a certain moment. A finding that goes on behind a time that nobody saw begins anew: what ran in that time nobody knows.
pub(crate) fn since(conditions: &[Condition], on: &OnJob<'_>) -> Result<(), Refusal> {
    let stuck = conditions.iter().filter_map(|condition| match condition {
        Condition::StillStuck { since } => Some(*since),
        _ => None,
    });
    for was in stuck {
        let is = on.since.ok_or_else(|| JobRefusal::NotKnown { what: "since when it is stuck".to_owned() })?;
        if was != is {
            return Err(JobRefusal::BeganAnew { was, is }.into());
        }
    }
    Ok(())
}

/// The word of a node that may be any is none.
pub(crate) fn attested(on: &OnJob<'_>) -> Result<(), Refusal> {
    if on.is_attested { Ok(()) } else { Err(Refusal::NotAttested) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::{LiveSample, of_job::Terminated, sample::NOW};
    use jiff::SignedDuration;

    fn with(change: impl FnOnce(&mut LiveSample)) -> Result<(), Refusal> {
        Terminated::with(|job| change(job.sample.live.as_mut().expect("a live sample")))
    }

    #[test]
    fn no_job_ends_without_its_agents_fresh_word_on_this_question_and_this_boot() {
        assert_eq!(Terminated::with(|job| job.sample.live = None), Err(Refusal::NoLiveSample));
        assert_eq!(with(|live| live.is_answer_to_this = false), Err(Refusal::LiveSampleOfAnother));
        let other = || "0".repeat(64).try_into().expect("a hash");
        assert_eq!(with(|live| live.plan = other()), Err(Refusal::LiveSampleOfAnother));
        assert_eq!(with(|live| live.boot = "0b1f".to_owned()), Err(Refusal::BootChanged));
        for (milliseconds, passes) in [(0, true), (5_000, true), (5_001, false), (-1, false)] {
            let received_at = NOW - SignedDuration::from_millis(milliseconds);
            let expected = if passes { Ok(()) } else { Err(Refusal::LiveSampleStale) };
            let at_once = |live: &mut LiveSample| (live.received_at, live.ended_at) = (received_at, Some(received_at));
            assert_eq!(with(at_once), expected, "{milliseconds}");
        }
    }

    #[test]
    fn an_answer_that_comes_late_or_by_a_wrong_clock_is_none() {
        for (milliseconds, passes) in [(-5_001, false), (-5_000, true), (0, true), (5_000, true), (5_001, false)] {
            let said = with(|live| live.ended_at = Some(live.received_at - SignedDuration::from_millis(milliseconds)));
            match said {
                Ok(()) => assert!(passes, "{milliseconds}"),
                Err(Refusal::Job(JobRefusal::NotOfNow { .. })) => assert!(!passes, "{milliseconds}"),
                other => panic!("{milliseconds}: {other:?}"),
            }
        }
        assert!(matches!(with(|live| live.ended_at = None), Err(Refusal::Job(JobRefusal::NotKnown { .. }))));
    }

    #[test]
    fn a_standstill_that_began_anew_is_not_the_one_that_was_approved() {
        let Err(Refusal::Job(JobRefusal::BeganAnew { was, is })) = Terminated::with(|job| job.since = Some(NOW)) else {
            panic!("what ran in between nobody saw");
        };
        assert!(was < is && is == NOW);
        let what = "since when it is stuck".to_owned();
        assert_eq!(Terminated::with(|job| job.since = None), Err(JobRefusal::NotKnown { what }.into()));
    }

    #[test]
    fn work_of_the_job_voids_it_and_an_idle_machine_is_no_word_on_the_job() {
        let why = "it made progress: CPU time".to_owned();
        let moved = with(|live| live.verdict = LiveVerdict::NotStuck(why.clone()));
        assert_eq!(moved, Err(JobRefusal::NotStuck { why }.into()));
        assert!(with(|live| live.verdict = LiveVerdict::Idle).is_err());
        assert!(with(|live| live.verdict = LiveVerdict::NotIdle("x".to_owned())).is_err());
    }

    #[test]
    fn the_word_of_a_node_that_may_be_any_is_none() {
        assert_eq!(Terminated::with(|job| job.sample.is_attested = false), Err(Refusal::NotAttested));
    }
}
