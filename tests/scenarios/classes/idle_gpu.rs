//! A machine that works for an hour without its GPU is told once, until the GPU works, and its whole price is not taken for the waste.

use heartbeat::wire;
use jiff::Timestamp;
use lab::sample;
use serde_json::Value;

use crate::site::{Site, observed_since_the_first, of_class};

lab::on_both_databases! {
    a_gpu_that_nobody_uses_is_told_until_somebody_does,
}

/// Half-minutes of heartbeats: 65 minutes.
const BEATS: u64 = 130;

/// A heartbeat of a machine whose processors work, and whose GPU had worked for so long when it ended.
fn beat(sequence: u64, end: Timestamp, gpu_busy_ns: u64) -> wire::Heartbeat {
    let mut beat = sample::heartbeat(sequence, end);
    observed_since_the_first(&mut beat);
    beat.host.as_mut().unwrap().gpu_present = true;
    let ok = wire::Capability {
        name: "gpu".into(),
        status: wire::CapabilityStatus::Ok.into(),
        ..wire::Capability::default()
    };
    beat.coverage.as_mut().unwrap().capabilities.push(ok);
    beat.gpus = vec![wire::Gpu { uuid: "GPU-1".into(), busy_ns: Some(gpu_busy_ns), ..wire::Gpu::default() }];
    beat
}

async fn a_gpu_that_nobody_uses_is_told_until_somebody_does(url: String) {
    let site = Site::new(&url).await;
    let sweeper = &site.sweeper;
    let report = async |beats, gpu_busy_ns| {
        site.report(beats, |sequence, end| beat(sequence, end, gpu_busy_ns)).await;
    };
    report(1..=BEATS, 7).await;
    let (_, told) = sweeper.sweep().await;
    assert_eq!(told["counts"]["active"], 1, "{told:#}");
    let found = of_class(&told, "idle_gpu");
    let [finding] = found.as_slice() else { panic!("{told:#}") };
    assert_eq!([&finding["name"], &finding["verdict"]], ["sample", "active"]);
    assert_eq!(finding["cost_micro_usd_per_hour"], Value::Null);
    assert_eq!(finding["plan"], Value::Null);
    let why = finding["why"].as_str().unwrap();
    assert!(
        why.starts_with("no GPU worked for more than 1 ms in any second; meanwhile: CPU time of workloads"),
        "{why}"
    );
    let id = finding["id"].as_str().unwrap();
    let text = String::from_utf8(sweeper.run(&["explain", id]).await.stdout).unwrap();
    for part in [
        "sample works or waits, and none of its GPUs has worked for 1 h 4 min",
        "decided again from the kept evidence just now: the same",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    let table = String::from_utf8(sweeper.run(&["findings"]).await.stdout).unwrap();
    assert!(table.contains("GPUs that nobody uses"), "{table}");

    report(BEATS + 1..=BEATS + 1, 20_000_000_000).await;
    let (_, went_on) = sweeper.sweep().await;
    assert_eq!(of_class(&went_on, "idle_gpu"), Vec::<Value>::new());
    let closed = sweeper.json(&["findings", "--closed"]).await;
    let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "idle_gpu").unwrap();
    let because = closed["status"]["because"].as_str().unwrap();
    assert!(because.starts_with("work of the GPUs was seen up to"), "{because}");
    let (decisions, plans) = sweeper.replays().await;
    assert!(decisions >= 2 && plans == 0, "{decisions}");
}
