use super::*;
use crate::verdict::work::{Spin, spin};

/// A heartbeat of a job that has used a CPU since the boot, and done nothing else.
fn spinning(minutes_ago: i64) -> wire::Heartbeat {
    let mut heartbeat = heartbeat_of_long_ago(minutes_ago);
    let minute = u64::try_from(1_000 - minutes_ago).expect("less than a thousand");
    for activity in own_rows(&mut heartbeat) {
        activity.cpu_ns = Some(minute * 60_000_000_000);
        activity.involuntary_switches = Some(minute * 100);
        activity.states = Some(wire::TaskStates { running: 1, ..wire::TaskStates::default() });
    }
    heartbeat
}

/// As [`heartbeat`], of a machine that booted earlier.
fn heartbeat_of_long_ago(minutes_ago: i64) -> wire::Heartbeat {
    let minute = u64::try_from(1_000 - minutes_ago).expect("less than a thousand");
    let mut heartbeat = heartbeat(0);
    heartbeat.sequence = minute * 2;
    let interval = heartbeat.interval.as_mut().expect("an interval");
    (interval.end_unix_ms, interval.end_boottime_ns) = (NOW - minutes_ago * MINUTE, minute * 60_000_000_000);
    heartbeat
}

fn own_rows(heartbeat: &mut wire::Heartbeat) -> [&mut wire::WorkloadActivity; 2] {
    let task = heartbeat.runs[0].tasks[0].activity.as_mut().expect("activity");
    [&mut heartbeat.workloads[0], task]
}

fn case(contract: Contract, [earlier, begin, end]: [wire::Heartbeat; 3]) -> WorkCase {
    let mut case = case_of(contract, begin, end);
    case.earlier = WorkSample::of(boot(), &earlier, &case.contract);
    serde_json::from_str(&serde_json::to_string(&case).expect("JSON")).expect("a case")
}

/// What is said of both kinds of work, with a change at each of the three heartbeats.
fn of(change: impl Fn(usize, &mut wire::Heartbeat)) -> [Spin; 2] {
    [batch(), task_of_run()].map(|contract| {
        let mut three = [spinning(121), spinning(31), spinning(0)];
        three.iter_mut().enumerate().for_each(|(at, one)| change(at, one));
        spin(&case(contract, three))
    })
}

fn at_end(change: impl Fn(&mut wire::WorkloadActivity)) -> [Spin; 2] {
    of(|at, heartbeat| {
        if at == 2 {
            own_rows(heartbeat).into_iter().for_each(&change);
        }
    })
}

#[test]
fn work_spins_that_has_only_used_cpu_time_for_long_enough() {
    let computes = Spin::Computes { since_unix_ms: NOW - 121 * MINUTE, until_unix_ms: NOW, cpu_ms: 121 * 60_000 };
    assert_eq!(of(|_, _| {}), [computes.clone(), computes]);
    let short = |minutes| {
        [batch(), task_of_run()].map(|contract| spin(&case(contract, [spinning(minutes), spinning(31), spinning(0)])))
    };
    assert!(matches!(short(120)[0], Spin::Computes { .. }));
    assert_eq!(short(119), [Spin::NotKnown, Spin::NotKnown], "not for long enough");
    // Half of one CPU is enough, and less is none.
    let used = |minute_ns: u64| {
        of(move |_, heartbeat| {
            let minute = heartbeat.interval.as_ref().map_or(0, |interval| interval.end_boottime_ns / 60_000_000_000);
            own_rows(heartbeat).into_iter().for_each(|row| row.cpu_ns = Some(minute * minute_ns));
        })
    };
    assert!(matches!(used(30_000_000_000)[1], Spin::Computes { .. }));
    assert_eq!(used(29_900_000_000), [Spin::NotKnown, Spin::NotKnown]);
}

#[test]
fn whatever_else_it_does_is_no_spin() {
    let changes: [fn(&mut wire::WorkloadActivity); 9] = [
        |row| row.forks = Some(4),
        |row| row.exits = Some(2),
        |row| row.voluntary_switches = Some(71),
        |row| row.minor_faults = Some(901),
        |row| row.read_calls = Some(41),
        |row| row.write_calls = Some(51),
        |row| row.disk_read_bytes = Some(4_097),
        |row| row.disk_written_bytes = Some(8_193),
        |row| row.network_sent_bytes = Some(1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let said = at_end(change);
        assert!(said.iter().all(|said| matches!(said, Spin::DoesMore { .. })), "{number}: {said:?}");
    }
    // Only before the shorter window, too.
    let early = of(|at, heartbeat| {
        if at == 0 {
            own_rows(heartbeat).into_iter().for_each(|row| row.minor_faults = Some(899));
        }
    });
    assert_eq!(early, [(); 2].map(|()| Spin::DoesMore { what: "page faults".to_owned() }));
    let on_gpu = of(|at, heartbeat| {
        heartbeat.host.as_mut().expect("a host").gpu_present = true;
        let busy_ns = Some(if at == 2 { 9 } else { 8 });
        heartbeat.gpus = vec![wire::Gpu { uuid: "A".into(), busy_ns, ..wire::Gpu::default() }];
        let gpu = wire::Capability {
            name: "gpu".into(),
            status: wire::CapabilityStatus::Ok.into(),
            ..wire::Capability::default()
        };
        heartbeat.coverage.as_mut().expect("coverage").capabilities = vec![gpu];
    });
    assert!(on_gpu.iter().all(|said| matches!(said, Spin::DoesMore { .. })), "{on_gpu:?}");
}

#[test]
fn what_was_not_measured_or_seen_all_the_time_is_not_known() {
    let changes: [fn(&mut wire::WorkloadActivity); 7] = [
        |row| row.cpu_ns = None,
        |row| row.execs = None,
        |row| row.voluntary_switches = None,
        |row| row.minor_faults = None,
        |row| row.read_calls = None,
        |row| row.disk_written_bytes = None,
        |row| row.network_received_bytes = None,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(at_end(change), [Spin::NotKnown, Spin::NotKnown], "{number}");
    }
    let others: [fn(usize, &mut wire::Heartbeat); 4] = [
        |at, heartbeat| heartbeat.sequence += if at == 2 { 0 } else { 1_000 },
        |at, heartbeat| {
            let interval = heartbeat.interval.as_mut().expect("an interval");
            interval.counters_since_boottime_ns += u64::from(at == 2);
        },
        |_, heartbeat| heartbeat.coverage.as_mut().expect("coverage").source = wire::Source::Proc.into(),
        |at, heartbeat| {
            if at == 2 {
                heartbeat.workloads.clear();
                heartbeat.runs.clear();
            }
        },
    ];
    for (number, change) in others.into_iter().enumerate() {
        assert_eq!(of(change), [Spin::NotKnown, Spin::NotKnown], "{number}");
    }
    let mut silent = case(batch(), [spinning(121), spinning(31), spinning(0)]);
    silent.now_unix_ms += 90_001;
    assert_eq!(spin(&silent), Spin::NotKnown);
    let alone = WorkCase { earlier: None, ..case(batch(), [spinning(121), spinning(31), spinning(0)]) };
    assert!(alone.may_spin() && spin(&alone) == Spin::NotKnown);
    let run = Contract::open_runs(&spinning(0)).next().expect("a run");
    assert_eq!(spin(&case(run, [spinning(121), spinning(31), spinning(0)])), Spin::NotKnown);
}
