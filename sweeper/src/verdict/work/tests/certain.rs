//! What must be so before a stuck job may be ended.

use super::*;

const SURE: [&str; 5] = ["accelerators", "rdma", "interfaces", "interactive_sessions", "timed_waits"];

fn capability(name: &str, status: wire::CapabilityStatus) -> wire::Capability {
    wire::Capability { name: name.into(), status: status.into(), ..wire::Capability::default() }
}

/// A heartbeat whose agent says that it sees everything, and sees nobody move.
fn sure(minutes_ago: i64) -> wire::Heartbeat {
    let mut beat = heartbeat(minutes_ago);
    let told = SURE.map(|name| capability(name, wire::CapabilityStatus::Ok));
    beat.coverage.as_mut().expect("coverage").capabilities.extend(told);
    beat
}

fn changed(begin: impl Fn(&mut wire::Heartbeat), end: impl Fn(&mut wire::Heartbeat)) -> (Verdict, Result<(), Doubt>) {
    let (mut first, mut last) = (sure(31), sure(0));
    begin(&mut first);
    end(&mut last);
    let case = case_of(batch(), first, last);
    // What is kept of it says the same.
    let text = serde_json::to_string(&case).expect("JSON");
    let case: WorkCase = serde_json::from_str(&text).expect("a case");
    let judgement = judge(&case);
    (judgement.verdict, certain(&case, &judgement))
}

/// What is said of a job that is stuck all the same.
fn doubt(end: impl Fn(&mut wire::Heartbeat)) -> Doubt {
    match changed(|_| (), end) {
        (Verdict::Stuck, Err(doubt)) => doubt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_is_surely_stuck_where_everything_is_told_and_nothing_moved() {
    assert_eq!(changed(|_| (), |_| ()), (Verdict::Stuck, Ok(())));
    let (verdict, said) = changed(|_| (), |end| own(end, |row| row.cpu_ns = Some(501)));
    assert_eq!(verdict, Verdict::Active);
    assert!(matches!(said, Err(Doubt::NotStuck { why }) if why.contains("CPU time")));
}

#[test]
fn what_else_runs_on_its_machine_may_be_what_it_waits_for() {
    // ECS placed it: who asks it over the loopback holds no connection with another machine.
    let both = |change: &dyn Fn(&mut wire::Heartbeat, u64)| changed(|begin| change(begin, 5), |end| change(end, 6));
    let placed = |beat: &mut wire::Heartbeat, cpu| beat.workloads.push(container("ecs", "t2/c2", cpu));
    assert_eq!(both(&placed), (Verdict::Stuck, Err(Doubt::OthersRan { by: vec![Progress::Cpu] })));
    let rests = |beat: &mut wire::Heartbeat, _| beat.workloads.push(container("ecs", "t2/c2", 5));
    assert_eq!(both(&rests), (Verdict::Stuck, Ok(())));
    let neighbour = |beat: &mut wire::Heartbeat, cpu| beat.workloads.push(row("/system.slice/postgresql.service", cpu));
    assert_eq!(both(&neighbour).1, Err(Doubt::OthersRan { by: vec![Progress::Cpu] }));
    let began = |end: &mut wire::Heartbeat| end.workloads.push(container("ecs", "t2/c2", 0));
    assert_eq!(doubt(began), Doubt::OthersRan { by: Vec::new() });
    assert_eq!(doubt(|end| drop(end.workloads.pop())), Doubt::OthersRan { by: Vec::new() });
    assert_eq!(changed(|begin| drop(begin.workloads.pop()), |end| drop(end.workloads.pop())).1, Ok(()), "it is alone");
    let lacking = doubt(|end| end.workloads[1].exits = None);
    assert_eq!(lacking, Doubt::OthersNotMeasured { lacking: Progress::Exits });
    let own = |beat: &mut wire::Heartbeat, cpu| {
        let system = wire::WorkloadActivity { class: wire::Class::Housekeeping.into(), ..row("/init.scope", cpu) };
        beat.workloads.push(system);
    };
    assert_eq!(both(&own).1, Ok(()), "nobody's work");
}

#[test]
fn what_a_timer_wakes_is_not_ended() {
    let slept_ns = 1_900_000_000_000;
    assert_eq!(doubt(|end| end.workloads[0].timed_wait_ns = Some(slept_ns)), Doubt::Timed { slept_ns });
    assert_eq!(changed(|_| (), |end| end.workloads[1].timed_wait_ns = Some(slept_ns)).1, Ok(()), "not of the job");
}

#[test]
fn what_may_hide_work_must_be_told() {
    for name in SURE {
        let untold = || Doubt::Untold { what: [name.to_owned()].into() };
        let without = |beat: &mut wire::Heartbeat| {
            beat.coverage.as_mut().expect("coverage").capabilities.retain(|one| one.name != name);
        };
        assert_eq!(doubt(without), untold(), "at the end");
        assert_eq!(changed(without, |_| ()).1, Err(untold()), "at the begin");
        let is = |status| {
            changed(without, |end| {
                without(end);
                end.coverage.as_mut().expect("coverage").capabilities.push(capability(name, status));
            })
        };
        let (verdict, said) = is(wire::CapabilityStatus::Denied);
        assert!(verdict != Verdict::Stuck || said == Err(untold()), "{name}");
        let none = changed(
            |begin| {
                without(begin);
                let none = capability(name, wire::CapabilityStatus::NotApplicable);
                begin.coverage.as_mut().expect("coverage").capabilities.push(none);
            },
            |_| (),
        );
        // Who sleeps by a timer is to be read, and not to be without.
        let expected = if name == "timed_waits" { Err(untold()) } else { Ok(()) };
        assert_eq!(none.1, expected, "{name}");
    }
}

#[test]
fn how_each_thread_is_held_must_be_told_and_be_a_plain_wait() {
    assert_eq!(doubt(|end| end.workloads[0].states = None), Doubt::StatesNotTold);
    assert_eq!(doubt(|end| end.workloads[0].states = Some(wire::TaskStates::default())), Doubt::StatesNotTold);
    let with = |change: fn(&mut wire::TaskStates)| {
        doubt(|end| {
            let mut states = wire::TaskStates { sleeping: 4, ..wire::TaskStates::default() };
            change(&mut states);
            end.workloads[0].states = Some(states);
        })
    };
    let held = |[uninterruptible, stopped, frozen]: [u32; 3]| Doubt::HeldByOthers {
        running: 0,
        uninterruptible,
        stopped,
        frozen,
    };
    assert_eq!(with(|states| states.uninterruptible = 1), held([1, 0, 0]));
    assert_eq!(with(|states| states.stopped = 1), held([0, 1, 0]));
    assert_eq!(with(|states| states.frozen = 1), held([0, 0, 1]));
    let lacks_a_cpu = |end: &mut wire::Heartbeat| {
        end.workloads[0].states = Some(wire::TaskStates { running: 1, sleeping: 4, ..wire::TaskStates::default() });
    };
    assert_eq!(changed(|_| (), lacks_a_cpu).0, Verdict::Unknown, "it is not even stuck");
}

#[test]
fn what_a_version_before_kept_ends_nothing() {
    let mut case = case_of(batch(), sure(31), sure(0));
    case.begin.as_mut().expect("a begin").beside = None;
    let judgement = judge(&case);
    assert_eq!((judgement.verdict, certain(&case, &judgement)), (Verdict::Stuck, Err(Doubt::NotKept)));
}

#[test]
fn a_container_of_the_job_that_ran_in_between_and_has_ended_is_progress() {
    let ended = |beat: &mut wire::Heartbeat| {
        let (states, not_run_ns, peers) = (None, None, None);
        let row = container("ecs", "t1/c2", 900);
        let row = wire::WorkloadActivity { live_processes: 0, live_threads: 0, states, not_run_ns, peers, ..row };
        beat.workloads.push(row);
    };
    assert_eq!(changed(|_| (), ended).0, Verdict::Active, "it began and ended in between");
    assert_eq!(changed(ended, |_| ()).0, Verdict::Active, "what it did is counted no more");
    assert_eq!(changed(ended, ended), (Verdict::Stuck, Ok(())), "it had ended before");
    let none_lives =
        |beat: &mut wire::Heartbeat| (beat.workloads[0].live_threads, beat.workloads[0].live_processes) = (0, 0);
    assert_eq!(changed(|_| (), none_lives).0, Verdict::Unknown, "one of them at least must live");
}
