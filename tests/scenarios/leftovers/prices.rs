//! What is used by nothing costs something all the same: told a month, or why it is not known.

use lab::{
    aws::{Address, Moto, Snapshot, Volume},
    sweeper::Sweeper,
};
use serde_json::json;
use std::{collections::BTreeSet, process::Command};

#[tokio::test]
async fn what_is_used_by_nothing_is_told_with_its_price_a_month_or_why_that_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(&folder.path().join("aws")).await;
    let volume = |volume_type: &str, size_gib, iops, throughput| Volume {
        volume_type: Some(volume_type.into()),
        size_gib: Some(size_gib),
        iops,
        throughput,
        ..Volume::default()
    };
    // $8.00; $0.80, $5.00 for 1,000 operations and $5.00 for 125 MiB a second; $12.50, $2,080.00 and $1,456.00; a type of a later day.
    let volumes = [
        volume("gp3", 100, Some(3_000), Some(125)),
        volume("gp3", 10, Some(4_000), Some(250)),
        volume("io2", 100, Some(64_000), None),
        volume("z9", 5, None, None),
    ];
    let volumes = moto.volumes("us-east-1", &volumes).await;
    moto.addresses("us-east-1", &[Address::default()]).await;
    let snapshot = Snapshot { volume: volumes[0].clone(), ..Snapshot::default() };
    moto.snapshots("us-east-1", &[snapshot.clone(), Snapshot { tier: Some("archive".into()), ..snapshot }]).await;
    let config = "[aws]\nregions = [\"us-east-1\"]\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n";
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), config, &environment).await;

    let (code, report) = sweeper.sweep().await;
    assert_eq!(code, 0, "{report:#}");
    let overview = &report["overview"];
    let left = json!({"count": 4, "gib": 215, "priced": 3, "micro_usd_per_month": 3_567_300_000_u64});
    assert_eq!(overview["unattached_volumes"], left, "{overview:#}");
    let left = json!({"count": 1, "gib": 0, "priced": 1, "micro_usd_per_month": 3_650_000});
    assert_eq!(overview["unused_addresses"], left);
    let why = "its volume type `z9` is not in the table of known ones";
    assert_eq!(overview["unpriced_left"], json!([{"why": why, "resources": 1}]));
    let most = json!({"count": 2, "bounded": 2, "micro_usd_per_month": 6_250_000});
    assert_eq!(overview["snapshots"], most, "$5.00 and, in the archive, $1.25");

    let table = String::from_utf8(sweeper.run(&["sweep"]).await.stdout).unwrap();
    for part in [
        "Left lying about: 4 volumes attached to nothing (215 GiB, $3567.30 a month besides 1 without a known price), \
         1 address tied to nothing ($3.65 a month).",
        &format!("no price of 1 of them: {why}"),
        "2 snapshots: what they cost is not known, since EC2 does not say how many bytes of each are stored. At most $6.25 a month",
    ] {
        assert!(table.contains(part), "`{part}` is not in:\n{table}");
    }
    // Each once for both sweeps, and all that one attribute tells in one call: two types, addresses, snapshots.
    let calls = moto.calls().await.into_iter().filter(|call| call.action == "GetProducts");
    let asked: Vec<String> = calls.map(|call| call.parameters.to_string()).collect();
    let different: BTreeSet<&String> = asked.iter().collect();
    assert_eq!((asked.len(), different.len()), (4, 4), "{asked:#?}");
}

#[test]
fn an_offer_file_takes_the_memory_of_what_is_asked_for() {
    // `make bench-prices` reads one of 4 GB. This one has 36,000 products, and needs 2 MB.
    let read = Command::new(env!("CARGO_BIN_EXE_bench-prices"))
        .args(["--megabytes", "60", "--reserved", "0", "--most-mb", "25"])
        .output()
        .unwrap();
    assert!(
        read.status.success(),
        "{}{}",
        String::from_utf8_lossy(&read.stdout),
        String::from_utf8_lossy(&read.stderr)
    );
}
