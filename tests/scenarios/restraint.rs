//! The agent holds back: a file stops it at once and for as long as it is there, above its own budget it does less and says so, and what
//! it says of its own cost is true.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::wire::{self, CapabilityStatus};
use jiff::Timestamp;
use lab::{agent::Agent, binaries, once::Group, process::Running, sweeper::Sweeper, wait};
use rustix::process::Signal;
use std::{fs, os::unix::process::ExitStatusExt as _, process::Command, time::Duration};
use sweeper::store::Store;

const INTERVAL: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(60);

struct Pair {
    agent: Agent,
    store: Store,
    _sweeper: Sweeper,
    _folder: tempfile::TempDir,
}

impl Pair {
    async fn start(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sweeper = Sweeper::start(&folder.path().join("sweeper"), "", &[]).await;
        let home = folder.path().join("agent");
        let config = format!(
            "sweeper_url = \"{}\"\njoin_token = \"{}\"\nidentity = \"host\"\ninterval = \"500ms\"\nstop_file = \"{}\"\n{settings}",
            sweeper.url(),
            sweeper.join_token(),
            home.join("run/stop").display()
        );
        let agent = Agent::start(&home, &config, &[]);
        let url = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
        let store = Store::connect(&url).await.unwrap();
        Self { agent, store, _sweeper: sweeper, _folder: folder }
    }

    /// All heartbeats, oldest first.
    async fn heartbeats(&self) -> Vec<wire::Heartbeat> {
        let Some(node) = self.store.nodes().await.unwrap().pop() else { return Vec::new() };
        let rows = self.store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        rows.into_iter().map(|row| row.heartbeat).collect()
    }

    async fn until(&self, what: &str, is_it: impl Fn(&wire::Heartbeat) -> bool) -> wire::Heartbeat {
        wait::until(what, TIMEOUT, || async { self.heartbeats().await.into_iter().rfind(&is_it) }).await
    }

    /// Programs that the agent keeps attached in the kernel.
    fn attached(&mut self) -> usize {
        let pid = self.agent.process().pid().as_raw_nonzero();
        let open = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
        let infos = open.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
        infos.filter(|info| info.contains("link_type:") && !info.contains("link_type:\titer")).count()
    }
}

fn capability(heartbeat: &wire::Heartbeat, name: &str) -> (CapabilityStatus, String) {
    let capabilities = &heartbeat.coverage.as_ref().unwrap().capabilities;
    let capability = capabilities
        .iter()
        .find(|capability| capability.name == name)
        .unwrap_or_else(|| panic!("no {name}: {capabilities:?}"));
    (capability.status(), capability.reason.clone())
}

fn since(heartbeat: &wire::Heartbeat) -> u64 {
    heartbeat.interval.unwrap().counters_since_boottime_ns
}

#[tokio::test]
async fn a_file_stops_collection_at_once_and_its_absence_begins_it_anew() {
    let mut pair = Pair::start("source = \"ebpf\"\n").await;
    let first = pair.until("a heartbeat", |_| true).await;
    assert_eq!(capability(&first, "kill_switch").0, CapabilityStatus::Ok);
    assert!(pair.attached() > 0);

    let said = pair.agent.run(&["stop"]).await;
    assert!(said.status.success(), "{said:?}");
    pair.agent.process().line_with("nothing is measured and nothing is sent", TIMEOUT).await;
    assert_eq!(pair.attached(), 0);
    let last = pair.heartbeats().await.pop().unwrap();
    let (status, reason) = capability(&last, "kill_switch");
    assert!(status == CapabilityStatus::Denied && reason.contains("run/stop"), "{reason}");
    // Nobody else looks meanwhile, either.
    let refused = pair.agent.run(&["once"]).await;
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("stopped by"),
        "{refused:?}"
    );
    // Silence is nothing that could be waited for: only time shows it.
    let count = pair.heartbeats().await.len();
    tokio::time::sleep(4 * INTERVAL).await;
    assert_eq!(pair.heartbeats().await.len(), count);

    assert!(pair.agent.run(&["resume"]).await.status.success());
    let next = pair.until("a heartbeat after the pause", |heartbeat| since(heartbeat) > since(&last)).await;
    assert_eq!(capability(&next, "kill_switch").0, CapabilityStatus::Ok);
    assert_eq!(next.interval.unwrap().start_boottime_ns, since(&next), "what happened in between is nobody's activity");
    assert!(pair.attached() > 0);
    pair.agent.stop().await;
}

fn forks(heartbeat: &wire::Heartbeat) -> u64 {
    heartbeat.workloads.iter().filter_map(|row| row.forks).sum()
}

/// Each throw is made half an interval around a sample, which sees it; the check once a second sees a quarter of them. Four throws, so that
/// one of them is seen by the sample alone with all but certainty.
#[tokio::test]
async fn a_throw_too_short_for_the_check_once_a_second_ends_in_counting_again() {
    // A step of the budget would attach the programs anew.
    let mut pair = Pair::start("source = \"ebpf\"\nmax_cpu_percent_of_host = 100.0\n").await;
    pair.until("a heartbeat", |_| true).await;
    let stop = pair.agent.folder().join("run/stop");
    fs::create_dir(stop.parent().unwrap()).unwrap();
    for round in 1..=4 {
        let before = pair.heartbeats().await.len();
        wait::until("the next sample", TIMEOUT, || async { (pair.heartbeats().await.len() > before).then_some(()) })
            .await;
        tokio::time::sleep(INTERVAL * 3 / 4).await;
        fs::write(&stop, "").unwrap();
        tokio::time::sleep(INTERVAL / 2).await;
        fs::remove_file(&stop).unwrap();
        let before = pair.heartbeats().await.len();
        wait::until(&format!("forks after throw {round}"), TIMEOUT / 2, || async {
            assert!(Command::new("true").status().unwrap().success());
            let all = pair.heartbeats().await;
            // The first two may have been under way before.
            let later = all.get(before + 2..).unwrap_or_default();
            later
                .windows(2)
                .any(|two| since(&two[0]) == since(&two[1]) && forks(&two[1]) > forks(&two[0]))
                .then_some(())
        })
        .await;
        assert!(pair.attached() > 0);
    }
    pair.agent.stop().await;
}

/// The sweeper takes the connection and then says nothing: an orderly end waits 2 s for it.
#[tokio::test]
async fn a_second_signal_ends_the_agent_at_once() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "sweeper_url = \"http://{}\"\njoin_token = \"none\"\nidentity = \"host\"\ninterval = \"500ms\"\n",
        silent.local_addr().unwrap()
    );
    let mut agent = Agent::start(&folder.path().join("agent"), &config, &[]);
    let _asked = tokio::time::timeout(TIMEOUT, silent.accept()).await.unwrap().unwrap();
    agent.process().signal(Signal::TERM);
    agent.process().line_with("told to end", TIMEOUT).await;
    assert_eq!(agent.process().ended(), None, "the first one is obeyed in good order");
    agent.process().signal(Signal::TERM);
    let ended = agent.process().end(Duration::from_secs(1)).await;
    assert_eq!(ended.signal(), Some(Signal::TERM.as_raw()));
}

#[tokio::test]
async fn an_agent_that_starts_stopped_waits_and_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stop = folder.path().join("stop");
    fs::write(&stop, "").unwrap();
    let config =
        format!("sweeper_url = \"http://127.0.0.1:9\"\nidentity = \"host\"\nstop_file = \"{}\"\n", stop.display());
    let mut agent = Agent::start(&folder.path().join("agent"), &config, &[]);
    agent.process().line_with("the kill switch is thrown", TIMEOUT).await;
    assert!(!agent.log().contains("measuring from here on"));
    fs::remove_file(&stop).unwrap();
    agent.process().line_with("measuring from here on", TIMEOUT).await;
    agent.stop().await;
}

#[tokio::test]
async fn above_its_budget_the_agent_does_less_step_by_step_and_says_so() {
    let mut pair = Pair::start("max_cpu_percent_of_host = 0.0001\n").await;
    let steps = |heartbeat: &wire::Heartbeat| heartbeat.agent.unwrap().degraded_steps;
    let last = pair.until("every step to be taken", |heartbeat| steps(heartbeat) == 4).await;
    let (status, reason) = capability(&last, "self_budget");
    assert_eq!(status, CapabilityStatus::Denied);
    assert!(
        reason.contains("network traffic is not told by workload") && reason.contains("above the budget"),
        "{reason}"
    );
    let (status, reason) = capability(&last, "pipelines");
    assert!(status == CapabilityStatus::Denied && reason.contains("self_budget"), "{reason}");
    assert!(last.runs.is_empty(), "{:?}", last.runs);
    assert_eq!(last.host.as_ref().unwrap().interval_ms, 1_000);
    assert!(last.workloads.iter().all(|row| row.network_sent_bytes.is_none() && row.cpu_ns.is_some()));
    assert!(last.counters.unwrap().network_sent_bytes.is_some(), "the host's interfaces are still counted");
    // One after the other, and nothing before the third interval.
    let all = pair.heartbeats().await;
    assert!(all.windows(2).all(|pair| steps(&pair[1]) <= steps(&pair[0]) + 1));
    assert!(all.iter().take(3).all(|heartbeat| steps(heartbeat) == 0));
    pair.agent.stop().await;
}

#[tokio::test]
async fn where_it_measures_by_records_of_exited_processes_a_stopped_agent_ends_so_that_a_new_one_may_open_them() {
    let mut pair = Pair::start("source = \"taskstats\"\n").await;
    let first = pair.until("a heartbeat", |_| true).await;
    assert_eq!(first.coverage.as_ref().unwrap().source(), wire::Source::Taskstats);
    assert_eq!(capability(&first, "kill_switch").0, CapabilityStatus::Ok);

    assert!(pair.agent.run(&["stop"]).await.status.success());
    pair.agent.process().line_with("nothing is measured and nothing is sent", TIMEOUT).await;
    let last = pair.heartbeats().await.pop().unwrap();
    assert_eq!(capability(&last, "kill_switch").0, CapabilityStatus::Denied);
    // Silence is nothing that could be waited for: only time shows it.
    let count = pair.heartbeats().await.len();
    tokio::time::sleep(4 * INTERVAL).await;
    assert_eq!(pair.heartbeats().await.len(), count);

    assert!(pair.agent.run(&["resume"]).await.status.success());
    assert_eq!(pair.agent.process().end(TIMEOUT).await.code(), Some(1));
    assert!(pair.agent.log().contains("start the agent anew"), "{}", pair.agent.log());
    // As its service manager does.
    pair.agent.kill();
    pair.agent.start_again();
    let next = pair.until("a heartbeat of the next process", |heartbeat| since(heartbeat) > since(&last)).await;
    assert_eq!(next.coverage.as_ref().unwrap().source(), wire::Source::Taskstats);
    assert!(next.interval.unwrap().start_boottime_ns >= last.interval.unwrap().end_boottime_ns);
    pair.agent.stop().await;
}

/// Of the kernel's clock for user and system time.
const TICK_NS: u64 = 10_000_000;

/// CPU time of all threads of a process, as `/proc` tells it, in nanoseconds.
fn cpu_ns(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The first word behind the name in brackets is the third of proc_pid_stat(5); user and system time are the 14th and 15th.
    let words: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    [11, 12].map(|at| words[at].parse::<u64>().unwrap()).iter().sum::<u64>() * TICK_NS
}

#[tokio::test]
async fn beside_three_thousand_processes_it_takes_less_than_20_mib_and_what_it_says_of_its_cost_is_true() {
    const COUNT: u32 = 3_000;
    const MOST_BYTES: u64 = 20 << 20;
    let mut pair = Pair::start("source = \"ebpf\"\n").await;
    let before = pair.until("a heartbeat", |_| true).await.agent.unwrap();
    assert!(before.bpf_ns.unwrap() > 0, "{before:?}");
    let folder = tempfile::tempdir().unwrap();
    let load = binaries::compiled("load.c", folder.path());
    let group = Group::new("crowd");
    let mut crowd = Running::start("crowd", group.inside(&load).args(["crowd", &COUNT.to_string()]), folder.path());
    crowd.line_with("crowded", TIMEOUT).await;
    let is_crowded = |heartbeat: &wire::Heartbeat| {
        heartbeat.workloads.iter().any(|row| row.key == group.key() && row.live_processes == COUNT + 1)
    };
    let first = pair.until("the crowd", is_crowded).await;
    let cpu_before = cpu_ns(pair.agent.process().pid().as_raw_nonzero().get());
    let later = |heartbeat: &wire::Heartbeat| heartbeat.sequence >= first.sequence + 4;
    let crowded = pair.until("four more heartbeats", later).await;
    assert!(is_crowded(&crowded));

    // Each fork made a program run, and so did each process in each sample.
    let (first, last) = (first.agent.unwrap(), crowded.agent.unwrap());
    assert!(first.bpf_runs.unwrap() >= before.bpf_runs.unwrap() + u64::from(COUNT), "{before:?} {first:?}");
    assert!(last.bpf_runs.unwrap() >= first.bpf_runs.unwrap() + 4 * u64::from(COUNT), "{first:?} {last:?}");
    assert!(last.bpf_ns.unwrap() > first.bpf_ns.unwrap() && first.bpf_ns.unwrap() > before.bpf_ns.unwrap());

    let pid = pair.agent.process().pid().as_raw_nonzero();
    let peak = pair.agent.process().memory_bytes("VmHWM");
    assert!(peak < MOST_BYTES, "{peak} bytes");
    // The agent told of it a moment earlier.
    let (told, resident) = (last.peak_resident_bytes.unwrap(), last.resident_bytes.unwrap());
    assert!(told <= peak && told * 10 >= peak * 9 && resident <= told, "{told} of {peak} bytes");
    let (least, told, most) = (cpu_before, last.cpu_ns.unwrap(), cpu_ns(pid.get()));
    // `/proc` cuts user and system time to whole ticks, each.
    assert!(told >= least && told < most + 2 * TICK_NS, "between {least} and {most} ns: {told} ns");
    assert!(told > first.cpu_ns.unwrap());
    assert!(crowd.terminate(TIMEOUT).await.success());
    pair.agent.stop().await;
}
