//! A moment in which nothing stands in the way of the end of a job.

use jiff::Timestamp;
use model::{
    job::JobFacts,
    plan::{Action, Condition, PlanContent},
};

use super::{LiveVerdict, OnJob, StuckJobs, Subject, may_act, sample::Sample};
use crate::{
    Refusal,
    job::sample::{JOB, attempt, facts, place},
};

/// Since when nothing of it has run.
const SINCE: Timestamp = Timestamp::constant(1_790_090_000, 0);

pub(crate) struct Terminated {
    pub(crate) sample: Sample,
    pub(crate) facts: JobFacts,
    pub(crate) since: Option<Timestamp>,
    pub(crate) cohort: StuckJobs,
}

impl Terminated {
    /// What is said of the moment with this change alone.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Result<(), Refusal> {
        let live = Sample::default().live;
        let mut sample = Sample { live, is_attested: true, ..Sample::of_two() };
        if let Some(live) = &mut sample.live {
            live.verdict = LiveVerdict::Stuck;
        }
        sample.approved(PlanContent {
            resource: format!("aws:123456789012:eu-central-1:job/{JOB}").parse().expect("a key"),
            title: "Terminate it".to_owned(),
            conditions: vec![
                Condition::TagsPermit,
                Condition::StateIs { state: "RUNNING".to_owned() },
                Condition::JobPlaceIs { place: place() },
                Condition::JobAttemptIs { attempt: attempt() },
                Condition::NothingDependsOnIt,
                Condition::StillStuck { since: SINCE },
            ],
            actions: vec![Action::TerminateJob],
            reversal: Vec::new(),
            ..sample.plan.content().clone()
        });
        let mut job = Self {
            sample,
            facts: facts(|_| ()),
            since: Some(SINCE),
            cohort: StuckJobs { running: 20, turned_stuck: 1 },
        };
        change(&mut job);
        let mut moment = job.sample.moment();
        let (is_attested, live) = (job.sample.is_attested, job.sample.live.as_ref());
        moment.subject =
            Subject::Job(OnJob { facts: &job.facts, since: job.since, cohort: &job.cohort, is_attested, live });
        may_act(&moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        JobRefusal,
        act::{Cohort, Switch},
    };
    use model::{address::Told, job::JobShape};

    #[test]
    fn a_job_that_nothing_speaks_for_keeping_may_be_terminated() {
        assert_eq!(Terminated::with(|_| ()), Ok(()));
    }

    #[test]
    fn what_is_asked_of_a_machine_is_asked_of_a_job_too() {
        let of = |change: fn(&mut Sample)| Terminated::with(|job| change(&mut job.sample));
        assert_eq!(of(|sample| sample.switch = Switch::On), Err(Refusal::SwitchedOff));
        assert_eq!(of(|sample| sample.is_switched_on = false), Err(Refusal::DryRunOnly));
        assert_eq!(of(|sample| sample.was_restored = None), Err(Refusal::Restored));
        assert_eq!(of(|sample| sample.current_plan = None), Err(Refusal::PlanWithdrawn));
        assert_eq!(of(|sample| sample.confirmed_sweeps = 0), Err(Refusal::NotConfirmed));
        assert_eq!(of(|sample| sample.is_own = None), Err(Refusal::Own));
        assert_eq!(of(|sample| sample.has_relapsed = true), Err(Refusal::Relapsed));
        assert_eq!(of(|sample| sample.caps.done = 5), Err(Refusal::Capped { done: 5, most: 5 }));
        assert_eq!(of(|sample| sample.says.truncate(1)), Err(Refusal::NotApproved { given: 1, needs: 2 }));
        let one = |sample: &mut Sample| {
            sample.says.truncate(1);
            sample.needs = Some(1);
        };
        assert_eq!(of(one), Err(Refusal::NotApproved { given: 1, needs: 2 }), "whatever a rule says");
        let turned = of(|sample| sample.cohort = Cohort { machines: 10, turned_idle: 10 });
        assert_eq!(turned, Ok(()), "that is of machines, and jobs have their own");
    }

    #[test]
    fn what_a_job_is_counts_as_much_as_what_was_approved() {
        let given = Terminated::with(|job| {
            job.facts.tags.get_or_insert_default().insert("owner".to_owned(), "grace".to_owned());
        });
        let [was, is] = ["ada", "grace"].map(|name| Some(name.to_owned()));
        assert_eq!(given, Err(Refusal::OwnerChanged { was, is }));
        let waits = Terminated::with(|job| job.facts.dependents = Told::Something { what: "job 7".to_owned() });
        assert_eq!(waits, Err(JobRefusal::DependedUpon { what: "job 7".to_owned() }.into()));
        let again = Terminated::with(|job| job.facts.attempt.as_mut().expect("an attempt").number = 2);
        assert!(matches!(again, Err(Refusal::Job(JobRefusal::AttemptChanged { .. }))), "{again:?}");
        let moved = Terminated::with(|job| job.facts.place.as_mut().expect("a place").queue.push('2'));
        assert!(matches!(moved, Err(Refusal::Job(JobRefusal::PlaceChanged { .. }))), "{moved:?}");
        // No condition of the plan says so.
        let part = Terminated::with(|job| job.facts.shape = JobShape::Child);
        assert_eq!(part, Err(JobRefusal::PartOfMore { what: "a child of an array".to_owned() }.into()));
        let over = Terminated::with(|job| job.facts.status = Some("SUCCEEDED".to_owned()));
        assert_eq!(over, Err(JobRefusal::NotRunning { status: "SUCCEEDED".to_owned() }.into()));
    }

    #[test]
    fn what_was_read_is_the_job_that_the_plan_names() {
        for change in [
            (|facts: &mut JobFacts| facts.job_id.push('2')) as fn(&mut JobFacts),
            |facts| facts.region = "us-east-1".to_owned(),
            |facts| facts.account = "999988887777".to_owned(),
        ] {
            assert_eq!(Terminated::with(|job| change(&mut job.facts)), Err(Refusal::OfAnotherKind));
        }
        let other = Terminated::with(|job| {
            let content = job.sample.plan.content().clone();
            job.sample.approved(PlanContent { actions: vec![Action::EndMember], ..content });
        });
        assert_eq!(other, Err(Refusal::OfAnotherKind));
    }

    #[test]
    fn a_plan_that_lacks_a_condition_on_the_job_it_is_about_ends_nothing() {
        let without = |lacking: fn(&Condition) -> bool| {
            Terminated::with(|job| {
                let mut content = job.sample.plan.content().clone();
                content.conditions.retain(|condition| !lacking(condition));
                job.sample.approved(content);
            })
        };
        assert_eq!(without(|it| matches!(it, Condition::StillStuck { .. })), Err(Refusal::OfAnotherKind));
        assert_eq!(without(|it| matches!(it, Condition::JobPlaceIs { .. })), Err(Refusal::OfAnotherKind));
        assert_eq!(without(|it| matches!(it, Condition::JobAttemptIs { .. })), Err(Refusal::OfAnotherKind));
    }
}
