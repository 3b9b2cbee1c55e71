//! The main job on real input: two machines boot, run the real agent and report to a real sweeper, which reads its
//! inventory from an EC2 API. One machine works and then falls quiet, one goes on working, and
//! a third has no agent. Intervals and windows are scaled down by configuration, nothing else is.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jiff::{SignedDuration, Timestamp};
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    binaries,
    imds::{Identity, Imds},
    microvm::{Guest, HOST, MicroVm},
    sweeper::Sweeper,
    wait,
};
use serde_json::Value;
use std::{fs, io::Write as _, path::Path, time::Duration};

const REGION: &str = "us-east-1";
const INTERVAL: SignedDuration = SignedDuration::from_secs(2);

const SWEEPER_CONFIG: &str = r#"
[aws]
enabled = "yes"
regions = ["us-east-1"]

[verdict]
boot_grace = "5s"
idle_after = "20s"
lookback = "10m"
# An emulated machine may lose some seconds when this host is busy.
missed_heartbeats = 10

[sweep]
# The scenario sweeps by hand.
schedule = "0 0 0 1 1 *"
"#;

/// The script becomes another program: as long as a script runs that has started something, its machine waits.
/// Nobody ever writes there. Whoever slept by the clock would wait.
const FOR_EVER: &str = "mkfifo /tmp/never && exec cat /tmp/never";

/// Starts the agent and a single-threaded computation, and goes on once the sweeper has three heartbeats of it: two observations.
const WORK: &str = r#"
set -eu
NODE_AGENT_LOG=node_agent=debug node-agent --config /etc/agent.toml run 2>/run/agent.log &
sha256sum /dev/zero &
work=$!
until [ "$(grep -c 'has stored heartbeats' /run/agent.log)" -ge 3 ]; do usleep 100000; done
"#;

/// Ends the computation, and says between which moments of the machine's own clock it ended, in seconds since boot.
const END: &str = r#"
read -r before _ </proc/uptime
kill $work
wait $work || :
read -r after _ </proc/uptime
say work ended between $before $after
"#;

/// Daemons that have nothing to do. What a whole distribution runs when nobody uses it is the scenario `real_machine`'s.
const DAEMONS: &str = "syslogd\nklogd\ncrond\n";

fn guest(script: &str, sweeper: &Sweeper, imds: &Imds) -> Guest {
    // An emulated CPU is tens of times slower than a real one: kept to its budget, the agent would read half as often.
    let config = format!(
        "sweeper_url = \"http://{HOST}:{}\"\njoin_token = \"{}\"\nstate_dir = \"/run/agent\"\ninterval = \"{}s\"\n\
         max_cpu_percent_of_host = 100\n",
        sweeper.port(),
        sweeper.join_token(),
        INTERVAL.as_secs()
    );
    let metadata = format!("export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://{HOST}:{}\n", imds.port());
    Guest::running(&format!("{metadata}{script}"))
        .with_program("node-agent", &binaries::node_agent())
        .with_text("agent.toml", &config)
}

fn metadata_of(instance: &str) -> Imds {
    Imds::start(Identity {
        account: ACCOUNT.into(),
        region: REGION.into(),
        instance: instance.into(),
        instance_type: "m5.large".into(),
        life_cycle: "on-demand".into(),
    })
}

async fn sweeper_over(moto: &Moto, folder: &Path) -> Sweeper {
    let environment = moto.environment();
    let environment = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>();
    Sweeper::start(folder, SWEEPER_CONFIG, &environment).await
}

/// The entries of a report's list that speak of a resource.
fn about<'a>(report: &'a Value, list: &str, resource: &str) -> Vec<&'a Value> {
    report[list].as_array().unwrap().iter().filter(|entry| entry["resource"] == resource).collect()
}

/// An interval of 2 s that took longer was not measured in time.
const HELD_BACK_MS: i64 = 2_500;

/// Whether an observation ended when the idle time began, was not measured in time, and has more CPU time than what is quiet has: 4 ms in 2 s.
fn was_held_back_in_use(observation: &Value, since: i64) -> bool {
    let [start, end] = ["start_unix_ms", "end_unix_ms"].map(|edge| observation[edge].as_i64().unwrap());
    let used_ns = observation["workload_cpu_ns"].as_i64().unwrap_or(0);
    // Each edge is rounded to a millisecond by itself.
    end - start > HELD_BACK_MS && (since - end).abs() <= 1 && used_ns > (end - start) * 2_000
}

/// Whether an observation began after this moment.
fn is_later(observation: &Value, unix_ms: i64) -> bool {
    observation["start_unix_ms"].as_i64().is_some_and(|start| start > unix_ms)
}

/// The idle time begins with the first observation after the work's end: not before that end, whoever looks at which clock how
/// late, and no later than the end of the observation that the work ended in. A machine that is emulated is stopped whenever this host is busy elsewhere,
/// and its kernel counts that time as CPU time of whoever was running: what it counts in an interval that became longer by it may be no work at all.
fn assert_begins_when_work_ends(explained: &Value, work_ended: &str) {
    let case = &explained["evidence"]["case"];
    let since: Timestamp = explained["finding"]["since"].as_str().unwrap().parse().unwrap();
    let since = since.as_millisecond();
    let booted = case["node"]["booted_unix_ms"].as_i64().unwrap();
    // Seconds and hundredths.
    let ms = |word: &str| {
        let (seconds, hundredths) = word.split_once('.')?;
        Some(booted + seconds.parse::<i64>().ok()? * 1_000 + hundredths.parse::<i64>().ok()? * 10)
    };
    let [before, after] = work_ended.split_whitespace().filter_map(ms).collect::<Vec<_>>()[..] else {
        panic!("{work_ended}")
    };
    let observations = case["observations"].as_array().unwrap().iter();
    let spans = observations.map(|seen| ["start_unix_ms", "end_unix_ms"].map(|edge| seen[edge].as_i64().unwrap()));
    let spans: Vec<[i64; 2]> = spans.collect();
    let later: Vec<&Value> =
        case["observations"].as_array().unwrap().iter().filter(|one| is_later(one, after)).collect();
    let said =
        format!("idle since {since}, work ended between {before} and {after}: {spans:?}; what followed: {later:#?}");
    // An observation is quiet with up to 4 ms of work in 2 s; the machine's clock is read in hundredths of a second.
    assert!(since >= before - 20, "{said}");
    let [_, latest] =
        spans.iter().find(|[start, end]| (*start..*end).contains(&after)).unwrap_or_else(|| panic!("{said}"));
    // Each edge is rounded to a millisecond by itself.
    let follows_one_held_back = later.iter().any(|one| was_held_back_in_use(one, since));
    assert!(since <= *latest + 1 || follows_one_held_back, "{said}");
    assert!(spans.iter().any(|[start, _]| *start == since), "{said}");
}

#[tokio::test]
async fn an_idle_machine_is_found_proven_and_priced_and_a_busy_one_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let named = |name| Instance::named("m5.large", name);
    let ids = moto.run(REGION, &[named("falls-quiet"), named("goes-on"), named("has-no-agent")]).await;
    let resource = |index: usize| format!("aws:{ACCOUNT}:{REGION}:{}", ids[index]);
    let (quiet, busy, silent) = (resource(0), resource(1), resource(2));
    let sweeper = sweeper_over(&moto, &folder.path().join("sweeper")).await;

    let (quiet_metadata, busy_metadata) = (metadata_of(&ids[0]), metadata_of(&ids[1]));
    let falls_quiet = format!("{DAEMONS}{WORK}{END}{FOR_EVER}");
    let goes_on = format!("{WORK}say work goes on\n{FOR_EVER}");
    let mut quiet_vm = MicroVm::boot(&folder.path().join("quiet"), &guest(&falls_quiet, &sweeper, &quiet_metadata));
    let mut busy_vm = MicroVm::boot(&folder.path().join("busy"), &guest(&goes_on, &sweeper, &busy_metadata));
    let timeout = Duration::from_secs(300);
    let work_ended = quiet_vm.said("work ended", timeout).await;
    busy_vm.said("work goes on", timeout).await;

    let report = wait::until("the first machine to be found idle", timeout, || {
        assert!(quiet_vm.is_running() && busy_vm.is_running(), "a machine ended: {}", quiet_vm.console());
        async {
            let report = sweeper.json(&["sweep"]).await;
            (!about(&report, "findings", &quiet).is_empty()).then_some(report)
        }
    })
    .await;

    let [finding] = about(&report, "findings", &quiet)[..] else { panic!("{report:#}") };
    assert_eq!(finding["class"], "idle_node", "{finding:#}");
    assert_eq!(finding["verdict"], "idle", "{finding:#}");
    assert_eq!(finding["name"], "falls-quiet", "{finding:#}");
    assert_eq!(finding["cost_micro_usd_per_hour"], 96_000, "{finding:#}");
    let id = finding["id"].as_str().unwrap();
    assert_begins_when_work_ends(&sweeper.json(&["explain", id]).await, &work_ended);

    for list in ["findings", "blind_spots", "unknown"] {
        assert_eq!(about(&report, list, &busy), Vec::<&Value>::new(), "{list}: {report:#}");
    }
    assert_eq!(report["counts"]["active"], 1, "{report:#}");

    assert_eq!(about(&report, "findings", &silent), Vec::<&Value>::new(), "{report:#}");
    let [blind_spot] = about(&report, "blind_spots", &silent)[..] else { panic!("{report:#}") };
    assert_eq!(blind_spot["verdict"], "unknown", "{blind_spot:#}");
    assert_eq!(report["complete"], true, "{report:#}");

    let mut shown = Vec::new();
    for arguments in [&["sweep"][..], &["explain", &id[..6]]] {
        let done = sweeper.command().env("CLICOLOR_FORCE", "1").args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        writeln!(shown, "\u{1b}[1m$ sweeper {}\u{1b}[0m", arguments.join(" ")).unwrap();
        shown.extend(done.stdout);
        writeln!(shown).unwrap();
    }
    let said = String::from_utf8(shown).unwrap();
    for part in ["falls-quiet", "has-no-agent", "3 machines run: $0.288/h", "Next:", "has been idle for", "Plan: Stop"]
    {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans >= 1, "{decisions} decisions, {plans} with a plan");
    // `make picture` draws docs/images/sweep.svg from it.
    if let Some(file) = std::env::var_os("SHOWN") {
        fs::write(file, said).unwrap();
    }
}
