//! A machine that waits, and on which hardly anything happened in its last full hours, is told once with what it costs; one that worked in one of them is not.

use heartbeat::wire;
use jiff::{SignedDuration, Timestamp};
use lab::{rollups, sample, sweeper::Sweeper};
use serde_json::Value;
use sweeper::store::{Store, TokenHash};

lab::on_both_databases! {
    a_machine_that_hardly_does_more_than_wait_is_told_until_it_is_idle,
}

/// Half-minutes of heartbeats: two hours and a half, of which one full hour at least has been over for a quarter of an hour.
const BEATS: u64 = 300;
/// How much a quiet machine and a busy one use of a CPU in half a minute.
const QUIET_NS: u64 = 600_000_000;
const BUSY_NS: u64 = 15_000_000_000;

/// A heartbeat of a machine of which the host's own counter of CPU time says so much, with a timer of somebody's if it `waits`.
fn beat(sequence: u64, end: Timestamp, cpu_busy_ns: u64, waits: bool) -> wire::Heartbeat {
    let mut beat = sample::quiet(sequence, end);
    beat.counters.as_mut().unwrap().cpu_busy_ns = Some(cpu_busy_ns);
    beat.schedules = Some(wire::Schedules {
        other_timers: Some(u32::from(waits)),
        other_crontabs: Some(0),
        ..wire::Schedules::default()
    });
    beat
}

fn barely_used(report: &Value) -> Vec<Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["class"] == "barely_used").cloned().collect()
}

async fn a_machine_that_hardly_does_more_than_wait_is_told_until_it_is_idle(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n[verdict]\nbarely_used_after = \"1h\"\n\
         [onprem.hourly_usd]\ndefault = \"0.25\"\n"
    );
    let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &[]);
    assert_eq!(sweeper.sweep().await.0, 0, "it makes the tables");
    let store = Store::connect(&url).await.unwrap();
    let (quiet, busy, boot) = (sample::node(7), sample::node(8), sample::boot(1));
    // The next one ends now.
    let now = Timestamp::now();
    let end = |sequence: u64| {
        now - SignedDuration::from_millis(sample::INTERVAL_MS) * i32::try_from(BEATS + 1 - sequence).unwrap()
    };
    for node in [&quiet, &busy] {
        store.join_node(&sample::join(node, boot), &TokenHash::of(&node.to_string()), now).await.unwrap();
    }
    // One worked until 35 minutes ago.
    let worked = |sequence: u64| sequence.min(BEATS - 70) * BUSY_NS;
    let quiet_beats: Vec<_> = (1..=BEATS).map(|number| beat(number, end(number), number * QUIET_NS, true)).collect();
    let busy_beats: Vec<_> = (1..=BEATS).map(|number| beat(number, end(number), worked(number), true)).collect();
    sample::store_all(&store, &quiet, boot, &quiet_beats).await;
    sample::store_all(&store, &busy, boot, &busy_beats).await;
    let (_, before) = sweeper.sweep().await;
    assert_eq!(barely_used(&before), Vec::<Value>::new(), "nothing is rolled up: what was done is not known");
    rollups::make_all(&store).await;

    let (_, told) = sweeper.sweep().await;
    assert_eq!(told["counts"]["waiting"], 2, "{told:#}");
    let found = barely_used(&told);
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!(finding["resource"].as_str().unwrap(), quiet.to_string());
    assert_eq!([&finding["name"], &finding["verdict"]], ["sample", "waiting"]);
    assert_eq!(finding["cost_micro_usd_per_hour"], 250_000);
    assert_eq!(finding["plan"], Value::Null);
    let why = finding["why"].as_str().unwrap();
    let hours = "no full hour of the last 1 h had more than 20 ms of CPU time, 0 B of storage traffic and 0 B of network traffic a second";
    assert!(why.contains("timer") && why.ends_with(hours), "{why}");
    let id = finding["id"].as_str().unwrap();
    let text = String::from_utf8(sweeper.run(&["explain", id]).await.stdout).unwrap();
    for part in [
        "sample has been barely used for 1 h\n",
        "Why barely used",
        "CPU time in the busiest hour: 20 ms a second (threshold 100 ms)",
        "hours measured: 1 of 1",
        "start it by a schedule",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let table = String::from_utf8(sweeper.run(&["findings"]).await.stdout).unwrap();
    assert!(table.contains("Barely used"), "{table}");

    // Its timer is gone: now it is idle.
    let gone = beat(BEATS + 1, end(BEATS + 1), (BEATS + 1) * QUIET_NS, false);
    sample::store_all(&store, &quiet, boot, &[gone]).await;
    let (_, went_on) = sweeper.sweep().await;
    assert_eq!(barely_used(&went_on), Vec::<Value>::new(), "{went_on:#}");
    assert_eq!(went_on["findings"][0]["class"], "idle_node", "{went_on:#}");
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "barely_used").unwrap();
    assert_eq!(closed["status"]["because"], "the machine is idle as a whole");
    let (decisions, _) = sweeper.replays().await;
    assert!(decisions >= 3, "{decisions}");
}
