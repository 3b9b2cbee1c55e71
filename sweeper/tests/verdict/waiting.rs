//! Work that waits is never idle, and the reason says for what.

use crate::{
    WHOSE,
    node::{Node, STARTED_S, bump, capability, wall},
    not_measured, why,
};
use heartbeat::wire::{self, CapabilityStatus, Class};
use model::Verdict;
use sweeper::verdict::{Case, Decision, Judgement, Policy, Protocol, Signal, Unknown, Wait, judge, words};

fn run(engine: &str, ended_boottime_ns: Option<u64>) -> wire::Run {
    wire::Run {
        id: format!("{engine}:17"),
        engine: engine.into(),
        pipeline: "align".into(),
        ended_boottime_ns,
        tasks_started: 5,
        tasks_ended: 3,
        activity: Some(wire::WorkloadActivity { class: Class::Workload.into(), ..Default::default() }),
        ..wire::Run::default()
    }
}

fn named(kind: &str, id: &str) -> Option<wire::WorkloadName> {
    Some(wire::WorkloadName { kind: kind.into(), id: id.into(), container: None })
}

fn group(class: Class, last_exchange_unix_ms: Option<i64>) -> wire::PeerGroup {
    wire::PeerGroup {
        protocol: wire::Protocol::Tcp.into(),
        port: 5432,
        outbound: true,
        command: "python3".into(),
        class: class.into(),
        peers: 2,
        last_exchange_unix_ms,
    }
}

fn peers(groups: Vec<wire::PeerGroup>) -> Option<wire::Peers> {
    Some(wire::Peers { groups, groups_not_listed: 0 })
}

fn waits_on(node: &Node) -> Vec<Wait> {
    match node.judge() {
        Judgement { verdict: Verdict::Waiting, decision: Decision::Waiting { on }, .. } => on,
        other => panic!("{other:?}"),
    }
}

fn a_run() -> Wait {
    Wait::Run { engine: "snakemake".into(), pipeline: "align".into(), open_tasks: 2 }
}

#[test]
fn an_open_run_waits_from_its_first_heartbeat_on_and_half_an_hour_after_its_end_the_node_is_idle() {
    let mut node = Node::new();
    node.runs = vec![run("snakemake", None)];
    assert_eq!(waits_on(node.quiet(1)), [a_run()], "named while the window is short");
    assert_eq!(waits_on(node.quiet(100)), [a_run()], "and however long it is");
    let said = words::decision(&node.judge(), &node.case());
    assert_eq!(said, "it waits: a snakemake run `align` that has not ended, with 2 open tasks");
    let ended = node.end_s + 10;
    node.runs = vec![run("snakemake", Some(ended * 1_000_000_000))];
    node.quiet(60);
    assert_eq!(
        why(node.judge()),
        Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(node.end_s - 59 * 30)) },
        "what waited was not idle"
    );
    assert_eq!(node.quiet(1).judge().verdict, Verdict::Idle);
    assert_eq!(node.judge().since_unix_ms, Some(wall(node.end_s - 60 * 30)));
}

#[test]
fn a_script_waits_for_what_it_started_and_a_daemon_that_is_a_script_does_not() {
    for (engine, tasks_ended, live_processes, expected) in [
        ("script", 4, Some(1), Verdict::Waiting),
        ("script", 5, Some(1), Verdict::Idle),
        // What it started before the agent did was never seen to begin.
        ("script", 5, Some(2), Verdict::Waiting),
        ("script", 5, None, Verdict::Waiting),
        // An engine may have all of its tasks elsewhere.
        ("snakemake", 5, Some(1), Verdict::Waiting),
    ] {
        let mut node = Node::new();
        let mut run = wire::Run { tasks_started: 5, tasks_ended, ..run(engine, None) };
        run.activity = live_processes.map(|live_processes| wire::WorkloadActivity {
            class: Class::Workload.into(),
            live_processes,
            ..Default::default()
        });
        node.runs = vec![run];
        assert_eq!(node.quiet(70).judge().verdict, expected, "{engine} {tasks_ended} {live_processes:?}");
    }
}

#[test]
fn a_run_of_housekeeping_never_waits() {
    for (class, expected) in WHOSE {
        let mut node = Node::new();
        let mut run = run("script", None);
        run.activity.as_mut().unwrap().class = class.into();
        node.runs = vec![run];
        assert_eq!(node.quiet(70).judge().verdict, expected, "{class:?}");
    }
}

#[test]
fn a_batch_step_waits_while_a_process_of_it_lives() {
    type Change = fn(&mut wire::WorkloadActivity);
    let job = |kind: &str| Wait::BatchStep { kind: kind.into(), id: "17".into() };
    let cases: [(&str, Change, Option<Wait>); 6] = [
        ("a step", |row| row.name = named("slurm", "17"), Some(job("slurm"))),
        (
            "a container in a job",
            |row| {
                row.name = named("podman", "0123");
                row.batch_job = named("slurm", "17");
            },
            Some(job("slurm")),
        ),
        ("a job of a kind that the rules add", |row| row.batch_job = named("lsf", "17"), Some(job("lsf"))),
        (
            "a step that has ended",
            |row| {
                row.name = named("slurm", "17");
                row.live_processes = 0;
            },
            None,
        ),
        ("a container", |row| row.name = named("docker", "17"), None),
        (
            "housekeeping in a job",
            |row| {
                row.name = named("slurm", "17");
                row.class = Class::Housekeeping.into();
            },
            None,
        ),
    ];
    for (what, change, expected) in cases {
        let mut node = Node::new();
        change(&mut node.workload);
        node.quiet(70);
        match expected {
            Some(wait) => assert_eq!(waits_on(&node), [wait], "{what}"),
            None => assert_eq!(node.judge().verdict, Verdict::Idle, "{what}: {:?}", node.judge()),
        }
    }
}

#[test]
fn a_job_that_shows_as_a_run_is_named_once() {
    let mut node = Node::new();
    node.workload.name = named("slurm", "17");
    node.runs = vec![run("slurm", None)];
    let on = waits_on(node.quiet(1));
    assert!(matches!(&on[..], [Wait::Run { .. }]), "{on:?}");
}

#[test]
fn peers_wait_if_data_was_exchanged_with_them_within_the_window_and_whoever_they_are_of() {
    for (class, waits) in [
        (Class::Workload, true),
        (Class::Kernel, true),
        (Class::Unspecified, true),
        (Class::Housekeeping, false),
        (Class::Self_, false),
    ] {
        let mut node = Node::new();
        node.peers = peers(vec![group(class, None)]);
        node.quiet(70);
        assert_eq!(node.judge().verdict, Verdict::Idle, "{class:?}: established, and silent");
        let at = wall(node.end_s) + 29_000;
        node.peers = peers(vec![group(class, Some(at))]);
        node.quiet(1);
        if !waits {
            assert_eq!(node.judge().verdict, Verdict::Idle, "{class:?}");
            continue;
        }
        let wait = Wait::Peers {
            protocol: Protocol::Tcp,
            port: 5432,
            outbound: true,
            command: "python3".into(),
            peers: 2,
            last_exchange_unix_ms: at,
        };
        assert_eq!(waits_on(&node), std::slice::from_ref(&wait), "{class:?}");
        node.quiet(59);
        assert_eq!(waits_on(&node), [wait], "29 minutes later");
        node.quiet(1);
        assert_eq!(node.judge().verdict, Verdict::Idle, "established, and silent for half an hour");
        assert_eq!(node.judge().since_unix_ms, Some(wall(node.end_s - 60 * 30)));
    }
}

#[test]
fn peers_that_have_left_do_not_wait_and_their_last_exchange_ends_the_window() {
    let mut node = Node::new();
    node.quiet(70);
    let at = wall(node.end_s) + 29_000;
    node.peers = peers(vec![group(Class::Workload, Some(at))]);
    node.quiet(1);
    node.peers = peers(Vec::new());
    node.quiet(59);
    assert_eq!(why(node.judge()), Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(node.end_s - 59 * 30)) });
    assert_eq!(node.quiet(1).judge().verdict, Verdict::Idle);
}

#[test]
fn peers_that_are_not_listed_may_have_exchanged_data_if_the_last_listed_one_did() {
    let at = wall(STARTED_S);
    for (groups, not_listed, expected) in [
        (vec![group(Class::Housekeeping, Some(at))], 1, Some(Signal::Peers)),
        (vec![group(Class::Housekeeping, Some(at)), group(Class::Housekeeping, None)], 1, None),
        (vec![group(Class::Housekeeping, Some(at))], 0, None),
    ] {
        let mut node = Node::new();
        node.peers = Some(wire::Peers { groups, groups_not_listed: not_listed });
        let judgement = node.quiet(70).judge();
        match expected {
            Some(signal) => assert_eq!(why(judgement), not_measured(&[signal], &[])),
            None => assert_eq!(judgement.verdict, Verdict::Idle),
        }
    }
}

#[test]
fn peers_that_could_not_be_listed_are_not_measured_and_an_older_agent_is_not_asked_for_them() {
    for (status, is_read) in [
        (CapabilityStatus::Ok, true),
        (CapabilityStatus::NotApplicable, true),
        (CapabilityStatus::Denied, false),
        (CapabilityStatus::Broken, false),
    ] {
        let mut node = Node::new();
        node.capabilities = vec![capability("peers", status)];
        let judgement = node.quiet(70).judge();
        if is_read {
            assert_eq!(judgement.verdict, Verdict::Idle, "{status:?}");
        } else {
            assert_eq!(why(judgement), not_measured(&[Signal::Peers], &[]), "{status:?}");
        }
    }
    assert_eq!(Node::new().quiet(70).judge().verdict, Verdict::Idle);
}

#[test]
fn waiting_is_named_before_a_contradiction_and_a_short_window_and_after_work_and_missing_evidence() {
    let waiting = || Node { runs: vec![run("snakemake", None)], ..Node::new() };
    // A gap, a contradiction and lost events behind the newest observation.
    let mut node = waiting();
    node.quiet(20);
    node.restart(11);
    assert_eq!(waits_on(node.quiet(1)), [a_run()], "a restarted agent");
    let mut node = waiting();
    node.quiet(20).pass(|n| bump(&mut n.counters.cpu_busy_ns, 10_000_000_000));
    assert_eq!(waits_on(&node), [a_run()], "a contradiction");
    let mut node = waiting();
    node.quiet(20).pass(|n| n.drops = 7).quiet(1);
    assert_eq!(waits_on(&node), [a_run()], "older events that were lost");

    let mut node = waiting();
    node.quiet(20).pass(|n| bump(&mut n.workload.cpu_ns, 30_000_000_000)).quiet(5);
    assert_eq!(node.judge().verdict, Verdict::Active);
    let mut node = waiting();
    node.quiet(20).pass(|n| n.drops = 7);
    assert_eq!(why(node.judge()), Unknown::LostEvents { count: 7 });
    let mut node = waiting();
    node.quiet(20).workload.disk_read_bytes = None;
    assert_eq!(why(node.quiet(1).judge()), not_measured(&[Signal::WorkloadDisk], &[]));
    let mut node = Node { gpu_present: true, ..waiting() };
    assert_eq!(why(node.quiet(20).judge()), Unknown::GpuNotMeasured);
    let mut node = Node { end_s: 0, counters_since_s: 0, ..waiting() };
    assert!(matches!(why(node.quiet(5).judge()), Unknown::BootGrace { .. }));
    let mut node = waiting();
    let late = Case { now_unix_ms: wall(node.quiet(20).end_s) + 90_001, ..node.case() };
    assert!(matches!(why(judge(&late)), Unknown::Silent { .. }));
}

#[test]
fn the_words_name_each_kind_and_no_name_acts_on_the_reader() {
    let said = |mut node: Node| {
        node.quiet(1);
        words::decision(&node.judge(), &node.case()).replace("; ", ";\n")
    };
    let mut node = Node::new();
    node.runs = vec![wire::Run { engine: "script\u{1b}[2J".into(), ..wire::Run::default() }];
    node.workload.name = named("slurm", "17");
    node.interactive_sessions =
        Some(wire::InteractiveSessions { terminal_sessions: 1, last_input_unix_ms: Some(wall(STARTED_S - 60)) });
    let first = said(node);
    let at = wall(STARTED_S + 20);
    let udp = wire::PeerGroup {
        protocol: wire::Protocol::Udp.into(),
        port: 51820,
        outbound: false,
        command: String::new(),
        peers: 0,
        ..group(Class::Kernel, Some(at))
    };
    let mut node = Node::new();
    node.peers = peers(vec![group(Class::Workload, Some(at - 1)), udp]);
    insta::assert_snapshot!(format!("{first}\n{}", said(node)));
}

#[test]
fn a_timer_or_a_crontab_that_the_distribution_does_not_ship_waits_as_long_as_it_exists_unless_they_are_said_not_to() {
    let shipped = wire::Schedules { shipped_timers: Some(7), shipped_crontabs: Some(5), ..wire::Schedules::default() };
    let at = wall(STARTED_S + 100_000);
    let told = wire::Schedules { next_shipped_timer_unix_ms: Some(at), ..shipped };
    for (schedules, wait, said) in [
        (wire::Schedules { other_timers: Some(0), other_crontabs: Some(0), ..told }, None, ""),
        (
            shipped,
            Some((None, None, None)),
            "it waits: timers that could not be listed and crontabs that could not be listed",
        ),
        (
            wire::Schedules { other_timers: Some(2), next_other_timer_unix_ms: Some(at), ..told },
            Some((Some(2), None, Some(at))),
            "it waits: 2 timers that the distribution does not ship and crontabs that could not be listed, due at 2026-09-22 19:00:00 UTC",
        ),
        (
            wire::Schedules { other_timers: Some(1), other_crontabs: Some(1), ..told },
            Some((Some(1), Some(1), None)),
            "it waits: 1 timer that the distribution does not ship and 1 crontab that the distribution does not ship",
        ),
    ] {
        let mut node = Node { schedules: Some(schedules), ..Node::new() };
        node.quiet(70);
        let Some((timers, crontabs, next_timer_unix_ms)) = wait else {
            assert_eq!(node.judge().verdict, Verdict::Idle, "{schedules:?}");
            continue;
        };
        assert_eq!(waits_on(&node), [Wait::Schedule { timers, crontabs, next_timer_unix_ms }]);
        assert_eq!(words::decision(&node.judge(), &node.case()), said);
        let policy = Policy { schedules_wait: false, ..Policy::default() };
        assert_eq!(judge(&Case { policy, ..node.case() }).verdict, Verdict::Idle, "said not to");
        // What was taken away again has done nothing: the window is as long as it was.
        node.schedules = Some(wire::Schedules { other_timers: Some(0), other_crontabs: Some(0), ..shipped });
        assert_eq!(node.quiet(1).judge().verdict, Verdict::Idle);
    }
}

#[test]
fn somebody_has_a_crontab_where_the_agent_does_not_say_that_nobody_has() {
    for (status, verdict) in [
        (CapabilityStatus::Ok, Verdict::Idle),
        (CapabilityStatus::NotApplicable, Verdict::Waiting),
        (CapabilityStatus::Denied, Verdict::Waiting),
    ] {
        let mut node = Node { capabilities: vec![capability("crontabs", status)], ..Node::new() };
        assert_eq!(node.quiet(70).judge().verdict, verdict, "{status:?}");
        if verdict == Verdict::Waiting {
            let wait = Wait::Schedule { timers: Some(0), crontabs: None, next_timer_unix_ms: None };
            assert_eq!(waits_on(&node), [wait]);
        }
    }
}

#[test]
fn eight_of_a_kind_are_kept_and_three_are_named() {
    let mut node = Node::new();
    let at = wall(STARTED_S);
    node.runs = (0..20).map(|_| run("snakemake", None)).collect();
    node.peers = peers((0..20).map(|port| wire::PeerGroup { port, ..group(Class::Workload, Some(at)) }).collect());
    let on = waits_on(node.quiet(1));
    assert_eq!(on.len(), 16);
    assert!(words::decision(&node.judge(), &node.case()).ends_with("; and 13 more"));
}

#[test]
fn whether_a_run_waits_is_not_known_while_the_agent_does_not_follow_them() {
    for (status, is_known) in [
        (CapabilityStatus::Ok, true),
        // Without eBPF.
        (CapabilityStatus::Unsupported, false),
        // Above the agent's budget.
        (CapabilityStatus::Denied, false),
        (CapabilityStatus::Broken, false),
        (CapabilityStatus::Unspecified, false),
    ] {
        let mut node = Node { capabilities: vec![capability("pipelines", status)], ..Node::new() };
        let judgement = node.quiet(70).judge();
        if is_known {
            assert_eq!(judgement.verdict, Verdict::Idle, "{status:?}");
        } else {
            assert_eq!(why(judgement), not_measured(&[Signal::Runs], &[]), "{status:?}");
        }
    }
}
