use super::*;

/// Judges the run as a whole, of which so many tasks had ended and failed at the begin and at the end.
fn run_judged(begin: [u64; 2], end: [u64; 2], change: impl Fn(&mut wire::Heartbeat)) -> WorkJudgement {
    let contract = Contract::open_runs(&heartbeat(0)).next().expect("an open run");
    let with = |minutes_ago, [ended, failed]: [u64; 2]| {
        let mut heartbeat = heartbeat(minutes_ago);
        (heartbeat.runs[0].tasks_ended, heartbeat.runs[0].tasks_failed) = (ended, failed);
        for (id, wait_status) in [(7, 256), (8, 9)] {
            let ended_boottime_ns = Some(id * 1_000);
            let (name, wait_status) = (format!("align-{id}"), Some(wait_status));
            heartbeat.runs[0].tasks.push(wire::Task { name, ended_boottime_ns, wait_status, ..task(id, 1) });
        }
        heartbeat
    };
    let mut newest = with(0, end);
    change(&mut newest);
    judge(&case_of(contract, with(31, begin), newest))
}

#[test]
fn a_run_is_stuck_if_its_tasks_fail_and_none_succeeds() {
    let of = |begin, end| run_judged(begin, end, |_| {}).decision;
    let last = Failure { name: "align-8".into(), wait_status: 9, ended_boottime_ns: 8_000 };
    assert_eq!(of([9, 2], [14, 7]), WorkDecision::Failing { tasks: 5, last: Some(last) });
    assert_eq!(of([9, 2], [13, 6]), WorkDecision::Unknown(WorkUnknown::FewFailures { failed: 4 }));
    assert_eq!(of([9, 2], [15, 7]), WorkDecision::Succeeded { tasks: 1 });
    assert_eq!(of([9, 2], [10, 2]), WorkDecision::Succeeded { tasks: 1 });
    assert_eq!(of([9, 2], [9, 2]), WorkDecision::Unknown(WorkUnknown::FewFailures { failed: 0 }));
    assert_eq!(run_judged([9, 2], [14, 7], |_| {}).verdict, Verdict::Stuck);
    let contract = Contract::open_runs(&heartbeat(0)).next().expect("an open run");
    let case = case_of(contract, heartbeat(31), heartbeat(0));
    assert_eq!(
        decision(&run_judged([9, 2], [14, 7], |_| {}), &case),
        "5 tasks of it failed within 31 min, and none succeeded; the last one was align-8, which ended with signal 9"
    );
}

#[test]
fn of_a_run_that_was_not_seen_whole_nothing_is_known() {
    let of = |change: fn(&mut wire::Heartbeat)| run_judged([9, 2], [14, 7], change).decision;
    let unknown = WorkDecision::Unknown;
    assert_eq!(of(|end| end.runs[0].ended_boottime_ns = Some(7)), unknown(WorkUnknown::NotShown));
    assert_eq!(
        of(|end| end.interval.as_mut().expect("an interval").counters_since_boottime_ns += 1),
        unknown(WorkUnknown::ObservedTooShort)
    );
    assert!(matches!(of(|end| end.sequence = 69 * 2 + 45), WorkDecision::Unknown(WorkUnknown::Gaps { .. })));
    let lost = of(|end| {
        let drop = wire::Drop { name: "missed_exits".into(), count: 1 };
        end.coverage.as_mut().expect("coverage").drops.push(drop);
    });
    assert_eq!(lost, unknown(WorkUnknown::LostEvents { count: 1 }));
    let contract = Contract::open_runs(&heartbeat(0)).next().expect("an open run");
    let mut before = heartbeat(31);
    before.runs.clear();
    assert_eq!(judge(&case_of(contract, before, heartbeat(0))).decision, unknown(WorkUnknown::ObservedTooShort));
}

#[test]
fn a_run_that_is_not_listed_for_want_of_room_or_rights_has_not_ended_by_that() {
    let gone = |change: fn(&mut wire::Heartbeat)| {
        [task_of_run(), Contract::open_runs(&heartbeat(0)).next().expect("an open run")].map(|contract| {
            let mut end = heartbeat(0);
            end.runs.clear();
            change(&mut end);
            judge(&case_of(contract, heartbeat(31), end)).decision
        })
    };
    let not_shown = WorkDecision::Unknown(WorkUnknown::NotShown);
    assert_eq!(gone(|_| {}), [not_shown.clone(), not_shown]);
    let what = vec!["runs and their tasks".to_owned()];
    let unread = WorkDecision::Unknown(WorkUnknown::NotMeasured { what });
    let full = gone(|end| end.runs = (0..64).map(|id| run(&format!("toil:{id}"), "toil", Vec::new())).collect());
    let denied = gone(|end| {
        let status = wire::CapabilityStatus::Denied.into();
        let capability = wire::Capability { name: "pipelines".into(), status, ..wire::Capability::default() };
        end.coverage.as_mut().expect("coverage").capabilities.push(capability);
    });
    for answer in full.into_iter().chain(denied) {
        assert_eq!(answer, unread);
    }
}
