//! What a verdict says, case by case, and that it can be replayed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{BootId, wire};
use proptest::prelude::*;
use sweeper::verdict::{Case, Decision, Judgement, Policy, Signal, Unknown, Verdict, judge, words};

const BOOT: BootId = BootId(uuid::Uuid::from_u128(1));
/// The node booted at this wall-clock time.
const BOOTED_MS: i64 = 1_790_000_000_000;
/// The agent started an hour later.
const STARTED_S: u64 = 3600;

/// Cumulative books as a test tells them, 30 s at a time.
#[derive(Clone)]
struct Node {
    end_s: u64,
    counters_since_s: u64,
    sequence: u64,
    workload: wire::WorkloadActivity,
    counters: wire::HostCounters,
    collector: wire::Collector,
    gpu_present: bool,
    drops: u64,
    sent: Vec<(BootId, wire::Heartbeat)>,
}

impl Node {
    fn new() -> Self {
        Self {
            end_s: STARTED_S,
            counters_since_s: STARTED_S,
            sequence: 0,
            workload: wire::WorkloadActivity {
                class: wire::Class::Workload.into(),
                key: "/user.slice".into(),
                top_command: "python3".into(),
                live_processes: 1,
                live_threads: 1,
                cpu_ns: Some(0),
                disk_read_bytes: Some(0),
                disk_written_bytes: Some(0),
                forks: Some(0),
                execs: Some(0),
                exits: Some(0),
                oom_kills: Some(0),
                peak_resident_bytes: Some(0),
            },
            counters: wire::HostCounters {
                cpu_busy_ns: Some(0),
                network_received_bytes: Some(0),
                network_sent_bytes: Some(0),
                own_network_received_bytes: Some(0),
                own_network_sent_bytes: Some(0),
                tasks_created: Some(0),
                oom_kills: Some(0),
                ..Default::default()
            },
            collector: wire::Collector::Ebpf,
            gpu_present: false,
            drops: 0,
            sent: Vec::new(),
        }
    }

    /// Lets an interval pass in which a quiet node spends 3 ms of workload CPU and 2 kB of network traffic.
    fn pass(&mut self, change: impl FnOnce(&mut Self)) -> &mut Self {
        let start_s = self.end_s;
        self.end_s += 30;
        self.sequence += 1;
        bump(&mut self.workload.cpu_ns, 3_000_000);
        bump(&mut self.counters.cpu_busy_ns, 3_000_000);
        bump(&mut self.counters.network_sent_bytes, 2_000);
        change(self);
        let heartbeat = wire::Heartbeat {
            sequence: self.sequence,
            interval: Some(wire::Interval {
                start_unix_ms: wall(start_s),
                end_unix_ms: wall(self.end_s),
                start_boottime_ns: start_s * 1_000_000_000,
                end_boottime_ns: self.end_s * 1_000_000_000,
                observed_since_unix_ms: wall(self.counters_since_s),
                counters_since_boottime_ns: self.counters_since_s * 1_000_000_000,
            }),
            host: Some(wire::Host {
                interval_ms: 30_000,
                cpus: 4,
                gpu_present: self.gpu_present,
                ..Default::default()
            }),
            counters: Some(self.counters),
            workloads: vec![self.workload.clone()],
            coverage: Some(wire::Coverage {
                collector: self.collector.into(),
                probes: Vec::new(),
                drops: vec![
                    wire::Drop { name: "dead_tasks".into(), count: self.drops },
                    wire::Drop { name: "spool_dropped".into(), count: self.sequence },
                ],
            }),
            agent: None,
        };
        self.sent.push((BOOT, heartbeat));
        self
    }

    fn quiet(&mut self, intervals: usize) -> &mut Self {
        for _ in 0..intervals {
            self.pass(|_| {});
        }
        self
    }

    fn case(&self) -> Case {
        Case::new(wall(self.end_s) + 1_000, Policy::default(), self.sent.clone())
    }

    fn judge(&self) -> Judgement {
        judge(&self.case())
    }
}

fn bump(counter: &mut Option<u64>, by: u64) {
    *counter = counter.map(|value| value + by);
}

fn wall(boot_s: u64) -> i64 {
    BOOTED_MS + i64::try_from(boot_s).unwrap() * 1000
}

fn why(judgement: Judgement) -> Unknown {
    match judgement.decision {
        Decision::Unknown(why) => why,
        other => panic!("expected unknown, found {other:?}"),
    }
}

#[test]
fn half_an_hour_of_quiet_is_idle_since_its_first_comparable_interval() {
    let judgement = Node::new().quiet(61).judge();
    assert_eq!(judgement.verdict, Verdict::Idle);
    assert_eq!(judgement.since_unix_ms, Some(wall(STARTED_S + 30)));
}

#[test]
fn a_minute_less_is_not_enough() {
    assert_eq!(
        why(Node::new().quiet(59).judge()),
        Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(STARTED_S + 30)) }
    );
}

#[test]
fn idle_begins_where_the_last_activity_ended() {
    let mut node = Node::new();
    node.quiet(10).pass(|n| bump(&mut n.workload.cpu_ns, 20_000_000_000)).quiet(60);
    assert_eq!(node.judge().since_unix_ms, Some(wall(STARTED_S + 11 * 30)));
}

#[test]
fn each_signal_alone_makes_a_node_active() {
    type Change = fn(&mut Node);
    let cases: [(Signal, Change); 6] = [
        (Signal::WorkloadCpu, |n| bump(&mut n.workload.cpu_ns, 100_000_000)),
        (Signal::WorkloadBirths, |n| bump(&mut n.workload.execs, 1)),
        (Signal::WorkloadBirths, |n| bump(&mut n.workload.forks, 1)),
        (Signal::WorkloadDisk, |n| bump(&mut n.workload.disk_read_bytes, 1 << 20)),
        (Signal::Network, |n| bump(&mut n.counters.network_received_bytes, 1 << 20)),
        (Signal::OomKill, |n| bump(&mut n.counters.oom_kills, 1)),
    ];
    for (signal, change) in cases {
        let mut node = Node::new();
        node.quiet(80).pass(change).quiet(59);
        match node.judge().decision {
            Decision::Above { signal: found, .. } => assert_eq!(found, signal),
            other => panic!("{signal:?}: {other:?}"),
        }
    }
}

#[test]
fn the_agents_own_traffic_is_not_work() {
    let mut node = Node::new();
    for _ in 0..70 {
        node.pass(|n| {
            bump(&mut n.counters.network_sent_bytes, 10 << 20);
            bump(&mut n.counters.own_network_sent_bytes, 10 << 20);
        });
    }
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn a_burst_is_not_averaged_away_by_lost_heartbeats() {
    let mut node = Node::new();
    node.quiet(100);
    // 3 s of CPU within 10 lost minutes: 5 ms a second on average, but all of it may have fallen into one interval.
    node.pass(|n| bump(&mut n.workload.cpu_ns, 100_000_000)).quiet(20);
    node.sent.drain(95..119);
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn lost_heartbeats_of_a_quiet_node_cost_resolution_and_not_the_verdict() {
    let mut node = Node::new();
    node.quiet(80);
    node.sent.drain(30..50);
    // 24 intervals' worth of idle cost (72 ms) stays under the floor of one interval only if the gap is short.
    node.sent.retain(|(_, h)| h.sequence != 60);
    assert_ne!(node.judge().verdict, Verdict::Idle, "20 lost intervals hide too much");
    let mut node = Node::new();
    node.quiet(80);
    node.sent.drain(40..45);
    assert_eq!(node.judge().verdict, Verdict::Idle);
}

#[test]
fn no_agent_and_silence_are_unknown() {
    let never = judge(&Case::new(0, Policy::default(), Vec::new()));
    assert_eq!(why(never), Unknown::NoAgent);
    let mut node = Node::new();
    node.quiet(100);
    let late = Case { now_unix_ms: wall(node.end_s) + 90_001, ..node.case() };
    assert_eq!(why(judge(&late)), Unknown::Silent { last_heartbeat_unix_ms: wall(node.end_s) });
}

#[test]
fn a_restarted_agent_starts_a_new_observation() {
    let mut node = Node::new();
    node.quiet(100);
    node.counters_since_s = node.end_s;
    node.workload.cpu_ns = Some(0);
    node.quiet(30);
    assert_eq!(why(node.judge()), Unknown::ObservedTooShort { quiet_since_unix_ms: Some(wall(STARTED_S + 101 * 30)) });
}

#[test]
fn a_signal_that_was_not_measured_is_never_quiet() {
    let mut node = Node::new();
    node.quiet(100);
    node.counters.network_sent_bytes = None;
    node.quiet(10);
    assert_eq!(why(node.judge()), Unknown::NotMeasured { signals: vec![Signal::Network] });
}

#[test]
fn a_counter_that_runs_backwards_is_not_measured() {
    let mut node = Node::new();
    node.quiet(100).pass(|n| n.workload.cpu_ns = Some(5)).quiet(10);
    assert_eq!(why(node.judge()), Unknown::NotMeasured { signals: vec![Signal::WorkloadCpu] });
}

#[test]
fn lost_kernel_events_are_unknown_and_lost_spool_records_are_not() {
    assert_eq!(Node::new().quiet(61).judge().verdict, Verdict::Idle);
    let mut node = Node::new();
    node.quiet(100).pass(|n| n.drops = 7).quiet(10);
    assert_eq!(why(node.judge()), Unknown::LostEvents { count: 7 });
}

#[test]
fn a_gpu_that_nobody_reads_is_unknown_unless_the_node_works() {
    let mut node = Node::new();
    node.gpu_present = true;
    node.quiet(100);
    assert_eq!(why(node.judge()), Unknown::GpuNotMeasured);
    node.pass(|n| bump(&mut n.workload.cpu_ns, 30_000_000_000));
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn a_machine_that_just_booted_is_unknown() {
    let mut node = Node::new();
    (node.end_s, node.counters_since_s) = (0, 0);
    node.quiet(19);
    assert_eq!(why(node.judge()), Unknown::BootGrace { booted_unix_ms: BOOTED_MS });
}

#[test]
fn without_attribution_cpu_time_and_births_that_nobody_owns_count_as_work() {
    let idle = |change: fn(&mut Node)| {
        let mut node = Node::new();
        node.collector = wire::Collector::Proc;
        (node.workload.forks, node.workload.execs, node.workload.oom_kills) = (None, None, None);
        node.quiet(70).pass(change).quiet(10);
        node.judge().verdict
    };
    assert_eq!(idle(|_| {}), Verdict::Idle);
    assert_eq!(idle(|n| bump(&mut n.counters.cpu_busy_ns, 500_000_000)), Verdict::Active);
    assert_eq!(idle(|n| bump(&mut n.counters.tasks_created, 100)), Verdict::Active);
}

#[test]
fn a_row_of_an_unknown_class_is_somebodys_work() {
    let mut node = Node::new();
    node.workload.class = 99;
    node.quiet(80).pass(|n| bump(&mut n.workload.cpu_ns, 30_000_000_000));
    assert_eq!(node.judge().verdict, Verdict::Active);
}

#[test]
fn the_words_name_signal_window_and_counters() {
    let mut node = Node::new();
    node.quiet(70);
    let case = node.case();
    let judgement = judge(&case);
    let Decision::AllQuiet { total, .. } = &judgement.decision else { panic!("{judgement:?}") };
    insta::assert_snapshot!(format!(
        "{}\n{}",
        words::decision(&judgement, &case),
        words::counters(total, &case).join("\n")
    ));
}

/// One interval of a random history.
#[derive(Clone, Debug)]
struct Step {
    cpu_ns: u64,
    execs: u64,
    network: u64,
    lost: bool,
    drops: u64,
    restart: bool,
    unmeasured: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0..80_000_000_u64, 0..40_u64, 0..200_000_u64, 0..20_u8, 0..40_u64, 0..60_u8, 0..60_u8).prop_map(
        |(cpu_ns, execs, network, lost, drops, restart, unmeasured)| Step {
            cpu_ns,
            execs: execs.saturating_sub(38),
            network,
            lost: lost == 0,
            drops: drops.saturating_sub(38),
            restart: restart == 0,
            unmeasured: unmeasured == 0,
        },
    )
}

fn play(steps: &[Step]) -> Case {
    let mut node = Node::new();
    for step in steps {
        if step.restart {
            node.counters_since_s = node.end_s;
        }
        let measured = node.workload.disk_read_bytes;
        node.pass(|n| {
            bump(&mut n.workload.cpu_ns, step.cpu_ns);
            bump(&mut n.workload.execs, step.execs);
            bump(&mut n.counters.network_received_bytes, step.network);
            n.drops += step.drops;
            if step.unmeasured {
                n.workload.disk_read_bytes = None;
            }
        });
        node.workload.disk_read_bytes = measured;
        if step.lost {
            node.sent.pop();
        }
    }
    Case { policy: Policy { idle_after_ms: 300_000, ..Policy::default() }, ..node.case() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_stored_case_replays_to_the_same_judgement_byte_for_byte(steps in proptest::collection::vec(step(), 0..60)) {
        let case = play(&steps);
        let stored = serde_json::to_string(&case).unwrap();
        let replayed: Case = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(serde_json::to_string(&judge(&case)).unwrap(), serde_json::to_string(&judge(&replayed)).unwrap());
    }

    #[test]
    fn idle_is_only_ever_said_of_an_unbroken_measured_quiet_window(steps in proptest::collection::vec(step(), 0..60)) {
        let case = play(&steps);
        let judgement = judge(&case);
        if judgement.verdict == Verdict::Idle {
            let since = judgement.since_unix_ms.unwrap();
            let window: Vec<_> = case.observations.iter().filter(|o| o.start_unix_ms >= since).collect();
            let node = case.node.as_ref().unwrap();
            prop_assert!(node.last_heartbeat_unix_ms - since >= case.policy.idle_after_ms);
            let covered: i64 = window.iter().map(|o| o.end_unix_ms - o.start_unix_ms).sum();
            prop_assert_eq!(covered, node.last_heartbeat_unix_ms - since);
            for observation in window {
                prop_assert!(observation.active(&case.policy, node.interval_ms).is_empty());
                prop_assert!(observation.not_measured().is_empty());
                prop_assert_eq!(observation.lost_events, 0);
            }
        }
    }

    #[test]
    fn more_activity_never_turns_a_node_idle(steps in proptest::collection::vec(step(), 1..60), at in 0_usize..60) {
        let before = judge(&play(&steps));
        let mut busier = steps.clone();
        let at = at % busier.len();
        busier[at].cpu_ns += 60_000_000_000;
        if before.verdict != Verdict::Idle {
            prop_assert_ne!(judge(&play(&busier)).verdict, Verdict::Idle);
        }
    }
}
