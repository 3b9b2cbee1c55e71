//! A stuck job: if and only if a job of AWS Batch is `RUNNING` by Batch's word, or a task of a run is open, or a pod of a Kubernetes job lives, by the word of the agent on its machine, the machine runs as far as
//! anybody knows, and the verdict on the job's own processes is `stuck`.
//!
//! Progress of any kind refutes it. A job that runs and gets nowhere (it spins, or asks again and again) is not found.

use super::{Answer, Class, Detector, Of, presence};
use crate::{
    snapshot::{Coverage, Listed, SnapshotPart, WorkInputs},
    verdict::work::{Contract, WorkDecision, WorkJudgement, WorkUnknown, decision},
};
use jiff::Timestamp;
use model::Verdict;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::StuckJob,
    version: 1,
    rests_on: &[SnapshotPart::Inventory, SnapshotPart::EcsTasks],
    answer: Of::Work(answer),
};

fn answer(inputs: &WorkInputs, judgement: &WorkJudgement) -> Answer {
    match inputs.work.contract {
        Contract::BatchJob { .. } | Contract::RunTask(_) | Contract::Pod { .. } => {}
        Contract::OrphanedTask(_) | Contract::Run { .. } => return Answer::NotKnown,
    }
    inputs.listed.as_ref().and_then(listed).unwrap_or_else(|| judged(inputs, judgement))
}

/// What the machine's being there and the verdict decide.
pub(super) fn judged(inputs: &WorkInputs, judgement: &WorkJudgement) -> Answer {
    if let Some(answer) = inputs.presence.as_ref().and_then(|one| presence::refutes(one, inputs.work.now_unix_ms)) {
        return answer;
    }
    let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
    match (judgement.verdict, &judgement.decision) {
        (Verdict::Active, _) => Answer::Refuted { because: decision(judgement, &inputs.work) },
        (Verdict::Stuck, _) if inputs.presence.is_some() => {
            let window = judgement.window_unix_ms.and_then(|[since, until]| Some((time(since)?, time(until)?)));
            match window {
                Some((since, until)) => Answer::Confirmed { since, until, work: None },
                None => Answer::NotKnown,
            }
        }
        (_, decision) => not_shown(inputs, decision),
    }
}

/// A run and its tasks are listed by their agent alone: what it shows no more is gone.
pub(super) fn not_shown(inputs: &WorkInputs, decision: &WorkDecision) -> Answer {
    match decision {
        WorkDecision::Unknown(WorkUnknown::NotShown) if !matches!(inputs.work.contract, Contract::BatchJob { .. }) => {
            Answer::Gone { because: "its machine's agent shows it no more".to_owned() }
        }
        _ => Answer::NotKnown,
    }
}

/// What Batch's word alone decides.
pub(super) fn listed(listed: &Listed) -> Option<Answer> {
    match (listed.is_there, listed.coverage, listed.status.as_deref()) {
        (false, Coverage::Complete, _) => Some(Answer::Gone { because: "AWS Batch lists it no more".to_owned() }),
        (false, Coverage::Failed | Coverage::NotAsked, _) | (true, _, None) => Some(Answer::NotKnown),
        (true, _, Some("RUNNING")) => None,
        (true, _, Some(status)) => Some(Answer::Refuted { because: format!("the job is {status}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        detectors::replay,
        inventory::InstanceState,
        snapshot::{Inputs, Presence},
        verdict::{
            Gpu,
            work::{Progress, RunEnd, RunNow, RunTask, WorkCase, WorkNow, WorkPolicy, WorkSample},
        },
    };
    use model::ResourceKey;

    const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);

    fn presence(state: InstanceState) -> Presence {
        Presence {
            listed: Some(state),
            coverage: Coverage::Complete,
            launched_at: None,
            last_heard: Some(NOW),
            gone_after_s: 7 * 86_400,
            silent_after_s: 3_600,
        }
    }

    fn sample(minutes_ago: i64) -> WorkSample {
        let minute = u64::try_from(100 - minutes_ago).expect("a minute");
        let needed = [Progress::Cpu, Progress::Starts, Progress::Exits, Progress::Switches];
        let counters = needed.map(|what| (what, 7)).into();
        WorkSample {
            boot_id: heartbeat::BootId(uuid::Uuid::from_u128(7)),
            sequence: minute * 2,
            interval_ms: 30_000,
            end_unix_ms: NOW.as_millisecond() - minutes_ago * 60_000,
            end_boottime_ns: minute * 60_000_000_000,
            counters_since_boottime_ns: 1,
            is_exact: true,
            lost_events: 0,
            run: None,
            run_end: None,
            work: Some(WorkNow { live_processes: 1, live_threads: 1, counters, ..WorkNow::default() }),
            gpu: Gpu::Absent,
            gpu_busy_ns: None,
            rdma_bytes: None,
            network_is_unread: false,
            people_are_unread: false,
            runs_are_unread: false,
            containers_are_unread: false,
            peers: Some(0),
            others: [].into(),
            last_input_unix_ms: None,
            beside: None,
        }
    }

    fn inputs(contract: Contract, listed: Option<Listed>) -> WorkInputs {
        let work = WorkCase {
            now_unix_ms: NOW.as_millisecond(),
            policy: WorkPolicy::default(),
            contract,
            begin: Some(sample(30)),
            earlier: None,
            end: Some(sample(0)),
            identity: None,
        };
        let machine: ResourceKey = "aws:123456789012:eu-central-1:i-1".parse().expect("a key");
        let presence = Some(presence(InstanceState::Running));
        WorkInputs { at: NOW, machine, presence, listed, work, failed: Vec::new() }
    }

    fn job() -> WorkInputs {
        let listed = Listed { coverage: Coverage::Complete, status: Some("RUNNING".into()), is_there: true };
        inputs(Contract::BatchJob { containers: ["t1".to_owned()].into() }, Some(listed))
    }

    fn task() -> WorkInputs {
        let [engine, pipeline, run, name] = ["slurm", "", "slurm:7", "0"].map(str::to_owned);
        inputs(Contract::RunTask(RunTask { engine, pipeline, run, task: 1, name }), None)
    }

    /// What is said of inputs that went through their kept form.
    fn of(inputs: &WorkInputs) -> Answer {
        let text = serde_json::to_string(inputs).expect("JSON");
        let read: WorkInputs = serde_json::from_str(&text).expect("inputs");
        assert_eq!(read, *inputs);
        replay(Class::StuckJob, &Inputs::Work(Box::new(read)))
    }

    fn of_both(change: impl Fn(&mut WorkInputs)) -> [Answer; 2] {
        [job(), task()].map(|mut inputs| {
            change(&mut inputs);
            of(&inputs)
        })
    }

    #[test]
    fn a_stuck_job_is_one_that_should_run_and_of_which_nothing_has_run() {
        let since = NOW - jiff::SignedDuration::from_mins(30);
        let confirmed = Answer::Confirmed { since, until: NOW, work: None };
        assert_eq!(of_both(|_| {}), [confirmed.clone(), confirmed]);
        let moved = of_both(|inputs| {
            let work = inputs.work.end.as_mut().and_then(|end| end.work.as_mut()).expect("work");
            work.counters.insert(Progress::Switches, 8);
        });
        let refuted = Answer::Refuted { because: "it made progress: context switches".into() };
        assert_eq!(moved, [refuted.clone(), refuted]);
        let waits = of_both(|inputs| inputs.work.end.as_mut().expect("an end").peers = Some(1));
        assert_eq!(waits, [Answer::NotKnown, Answer::NotKnown]);
    }

    #[test]
    fn what_batch_says_of_a_job_counts_before_its_processes_do() {
        let listed = |coverage, status: Option<&str>, is_there| {
            let listed = Listed { coverage, status: status.map(str::to_owned), is_there };
            of(&WorkInputs { listed: Some(listed), ..job() })
        };
        let complete = Coverage::Complete;
        assert_eq!(
            listed(complete, Some("SUCCEEDED"), true),
            Answer::Refuted { because: "the job is SUCCEEDED".into() }
        );
        assert_eq!(listed(complete, None, true), Answer::NotKnown);
        assert_eq!(listed(complete, None, false), Answer::Gone { because: "AWS Batch lists it no more".into() });
        assert_eq!(listed(Coverage::Failed, None, false), Answer::NotKnown);
        assert_eq!(listed(Coverage::NotAsked, None, false), Answer::NotKnown);
        for part in [SnapshotPart::Inventory, SnapshotPart::EcsTasks] {
            assert_eq!(of(&WorkInputs { failed: vec![part], ..job() }), Answer::NotKnown);
        }
    }

    #[test]
    fn a_run_as_a_whole_is_another_classs_and_one_success_ends_it() {
        let run = |ended, failed| Some(RunNow { ended, failed, last: None });
        let [engine, pipeline, id] = ["snakemake", "rna", "9-9"].map(str::to_owned);
        let mut inputs = inputs(Contract::Run { engine, pipeline, run: id }, None);
        inputs.work.begin.as_mut().expect("a begin").run = run(9, 2);
        inputs.work.end.as_mut().expect("an end").run = run(14, 7);
        let of_class = |class, inputs: &WorkInputs| replay(class, &Inputs::Work(Box::new(inputs.clone())));
        assert_eq!(of(&inputs), Answer::NotKnown);
        let since = NOW - jiff::SignedDuration::from_mins(30);
        let confirmed = Answer::Confirmed { since, until: NOW, work: None };
        assert_eq!(of_class(Class::FailingRun, &inputs), confirmed);
        for other in [job(), task()] {
            assert_eq!(of_class(Class::FailingRun, &other), Answer::NotKnown);
        }
        inputs.work.end.as_mut().expect("an end").run = run(15, 7);
        let refuted = Answer::Refuted { because: "1 task succeeded".into() };
        assert_eq!(of_class(Class::FailingRun, &inputs), refuted);
        inputs.work.end.as_mut().expect("an end").run = None;
        let gone = Answer::Gone { because: "its machine's agent shows it no more".into() };
        assert_eq!(of_class(Class::FailingRun, &inputs), gone);
    }

    #[test]
    fn a_task_that_outlived_its_run_is_another_classs_and_work_does_not_end_it() {
        let Contract::RunTask(of_run) = task().work.contract else { panic!("a task") };
        let mut inputs = inputs(Contract::OrphanedTask(of_run), None);
        let end = inputs.work.end.as_mut().expect("an end");
        let ended_boottime_ns = end.end_boottime_ns - 45 * 60_000_000_000;
        end.run_end = Some(RunEnd { ended_boottime_ns, wait_status: None });
        end.work.as_mut().expect("work").counters.insert(Progress::Cpu, 9_000_000_000);
        let of_class = |class, inputs: &WorkInputs| {
            let text = serde_json::to_string(inputs).expect("JSON");
            replay(class, &Inputs::Work(Box::new(serde_json::from_str(&text).expect("inputs"))))
        };
        let of = |inputs: &WorkInputs| of_class(Class::OrphanedTask, inputs);
        let since = NOW - jiff::SignedDuration::from_mins(45);
        assert_eq!(of(&inputs), Answer::Confirmed { since, until: NOW, work: None });
        for class in [Class::StuckJob, Class::FailingRun] {
            assert_eq!(of_class(class, &inputs), Answer::NotKnown);
        }
        for other in [job(), task()] {
            assert_eq!(of(&other), Answer::NotKnown);
        }
        let failed = WorkInputs { failed: vec![SnapshotPart::Inventory], ..inputs.clone() };
        assert_eq!(of(&failed), Answer::NotKnown);
        assert_eq!(of(&WorkInputs { presence: None, ..inputs.clone() }), Answer::NotKnown);
        let stopped = WorkInputs { presence: Some(presence(InstanceState::Stopped)), ..inputs.clone() };
        assert_eq!(of(&stopped), Answer::Refuted { because: "the instance is stopped".into() });
        inputs.work.end.as_mut().expect("an end").run_end = None;
        let gone = Answer::Gone { because: "its machine's agent shows it no more".into() };
        assert_eq!(of(&inputs), gone, "its run is open again");
    }

    #[test]
    fn a_task_ends_with_its_machine_and_when_its_agent_shows_it_no_more() {
        let stopped = of_both(|inputs| inputs.presence = Some(presence(InstanceState::Stopped)));
        let refuted = Answer::Refuted { because: "the instance is stopped".into() };
        assert_eq!(stopped, [refuted.clone(), refuted]);
        assert_eq!(of_both(|inputs| inputs.presence = None), [Answer::NotKnown, Answer::NotKnown]);
        let not_shown = of_both(|inputs| inputs.work.end.as_mut().expect("an end").work = None);
        let gone = Answer::Gone { because: "its machine's agent shows it no more".into() };
        assert_eq!(not_shown, [Answer::NotKnown, gone]);
        let silent = of_both(|inputs| inputs.work.now_unix_ms += 90_001);
        assert_eq!(silent, [Answer::NotKnown, Answer::NotKnown]);
    }
}
