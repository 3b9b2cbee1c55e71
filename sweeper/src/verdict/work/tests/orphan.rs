use super::*;

/// Minutes since the boot at which the newest heartbeat ends.
const END_MINUTE: u64 = 100;

/// A heartbeat whose run ended so many minutes before the newest one, if it had by then.
fn left_behind(minutes_ago: i64, run_ended_ago: u64) -> wire::Heartbeat {
    let mut heartbeat = heartbeat(minutes_ago);
    let ended_boottime_ns = (END_MINUTE - run_ended_ago) * 60_000_000_000;
    let has_ended = heartbeat.interval.as_ref().is_some_and(|interval| interval.end_boottime_ns >= ended_boottime_ns);
    let run = &mut heartbeat.runs[0];
    run.tasks[0].name = "fit".into();
    if has_ended {
        (run.ended_boottime_ns, run.wait_status) = (Some(ended_boottime_ns), Some(9));
    }
    heartbeat
}

fn contract() -> Contract {
    Contract::orphaned_tasks(&left_behind(0, 40)).next().expect("an orphaned task")
}

fn of(run_ended_ago: u64, change: impl Fn(&mut wire::Heartbeat)) -> (WorkCase, WorkJudgement) {
    let mut end = left_behind(0, run_ended_ago);
    change(&mut end);
    let case = case_of(contract(), left_behind(31, run_ended_ago), end);
    let judgement = judge(&case);
    (case, judgement)
}

fn runs_on(heartbeat: &mut wire::Heartbeat) {
    heartbeat.runs[0].tasks[0].activity.as_mut().expect("activity").cpu_ns = Some(500 + 90_000_000_000);
}

#[test]
fn a_task_is_orphaned_once_its_run_has_been_over_for_long_enough_whether_it_works_or_not() {
    let orphaned = |ago: i64, cpu_ms| WorkDecision::Orphaned {
        run_ended_unix_ms: NOW - ago * MINUTE,
        run_wait_status: Some(9),
        processes: 2,
        cpu_ms,
    };
    for ago in [30, 31, 40] {
        let (_, judgement) = of(u64::try_from(ago).expect("minutes"), |_| {});
        assert_eq!((judgement.decision, judgement.verdict), (orphaned(ago, Some(0)), Verdict::Unknown), "{ago}");
    }
    let lately = WorkUnknown::EndedLately { run_ended_unix_ms: NOW - 29 * MINUTE };
    assert_eq!(of(29, |_| {}).1.decision, WorkDecision::Unknown(lately));
    let (case, judgement) = of(40, runs_on);
    assert_eq!((&judgement.decision, judgement.verdict), (&orphaned(40, Some(90_000)), Verdict::Active));
    assert_eq!(
        decision(&judgement, &case),
        "its run ended at 2027-01-15 07:20:00 UTC with signal 9, and 2 processes of it live on; they used 1 min 30 s of CPU time in the last 31 min"
    );
    // Its first process is gone, and another one of it lives.
    let forked = of(40, |end| end.runs[0].tasks[0].ended_boottime_ns = Some(7)).1;
    assert_eq!(forked.decision, orphaned(40, Some(0)));
    // Nobody saw how the run ended, nor what the task had used.
    let unseen = of(40, |end| {
        end.runs[0].wait_status = None;
        end.runs[0].tasks[0].activity.as_mut().expect("activity").cpu_ns = None;
    });
    assert!(matches!(unseen.1.decision, WorkDecision::Orphaned { run_wait_status: None, cpu_ms: None, .. }));
    assert!(decision(&unseen.1, &unseen.0).ends_with("UTC, and 2 processes of it live on"));
}

#[test]
fn what_is_not_shown_and_what_nobody_observed_is_no_orphan() {
    let unknown = WorkDecision::Unknown;
    let not_shown = unknown(WorkUnknown::NotShown);
    assert_eq!(of(40, |end| end.runs.clear()).1.decision, not_shown);
    assert_eq!(of(40, |end| end.runs[0].ended_boottime_ns = None).1.decision, not_shown, "it is open again");
    let ended = |end: &mut wire::Heartbeat| {
        end.runs[0].tasks[0].activity.as_mut().expect("activity").live_processes = 0;
    };
    assert_eq!(of(40, ended).1.decision, not_shown);
    let anew = |end: &mut wire::Heartbeat| {
        end.interval.as_mut().expect("an interval").counters_since_boottime_ns += 1;
    };
    assert_eq!(of(40, anew).1.decision, unknown(WorkUnknown::ObservedTooShort));
    let end = left_behind(0, 40);
    let mut case = case_of(contract(), left_behind(31, 40), end);
    case.now_unix_ms += 90_001;
    assert_eq!(judge(&case).decision, unknown(WorkUnknown::Silent { last_heartbeat_unix_ms: NOW }));
}

#[test]
fn a_script_and_housekeeping_leave_no_orphans() {
    let of = |change: fn(&mut wire::Run)| {
        let mut heartbeat = left_behind(0, 40);
        change(&mut heartbeat.runs[0]);
        Contract::orphaned_tasks(&heartbeat).count()
    };
    assert_eq!(of(|_| {}), 1);
    assert_eq!(of(|run| run.engine = "script".into()), 0);
    assert_eq!(of(|run| run.ended_boottime_ns = None), 0);
    let own = |run: &mut wire::Run, class: wire::Class| {
        run.tasks[0].activity.as_mut().expect("activity").class = class.into();
    };
    for class in [wire::Class::Housekeeping, wire::Class::Self_] {
        let mut heartbeat = left_behind(0, 40);
        own(&mut heartbeat.runs[0], class);
        assert_eq!(Contract::orphaned_tasks(&heartbeat).count(), 0, "{class:?}");
    }
}
