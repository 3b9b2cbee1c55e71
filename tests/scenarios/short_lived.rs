//! Processes that live for a millisecond are counted to the last one, and their CPU time is what the kernel's own counters of their
//! cgroup say. That the identical binary does so on other kernels is the scenario `kernels`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    once::{Group, Once},
    process::Running,
    short_lived::{Proof, ShortLived},
    wait,
};
use std::{fs, time::Duration};
use tokio::sync::Mutex;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Thousands of names fill the maps of every agent on this host: one scenario at a time, then.
static HOST: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn twenty_thousand_short_lived_processes_are_counted_exactly_and_to_the_nanosecond() {
    const COUNT: u32 = 20_000;
    let _alone = HOST.lock().await;
    let proof = Proof::on_this_host(&ShortLived::programs(COUNT)).await;
    assert!(proof.cpu_ns / u64::from(COUNT) < 3_000_000, "no short-lived processes: {} ns for all", proof.cpu_ns);
    proof.assert_exact(COUNT);
}

#[tokio::test]
async fn a_flood_of_names_loses_attribution_and_never_the_sums() {
    // The map holds 8,192 keys: thousands of these names find no place.
    const COUNT: u32 = 12_000;
    let _alone = HOST.lock().await;
    let proof = Proof::on_this_host(&ShortLived { kind: "names", ..ShortLived::programs(COUNT) }).await;
    assert!(proof.drops("detail_map_overflow") > 0);
    assert!(proof.own("exits") < u64::from(COUNT));
    // What others on this host did meanwhile may be in the overflow row as well, but no more than they were.
    let exits = proof.own("exits") + proof.overflow("exits");
    assert!(exits >= u64::from(COUNT), "{exits}");
    let cpu_ns = proof.own("cpu_ns") + proof.overflow("cpu_ns");
    assert!(cpu_ns >= proof.cpu_ns / 100 * 99, "{cpu_ns} ns of {} ns", proof.cpu_ns);
    // The group's own row holds nobody else's, and nothing twice.
    assert!(proof.own("cpu_ns") <= proof.cpu_ns / 100 * 101, "{} ns of {} ns", proof.own("cpu_ns"), proof.cpu_ns);
    assert!(proof.own("forks") <= u64::from(COUNT) + 2, "{}", proof.own("forks"));
}

#[tokio::test]
async fn a_flood_of_names_is_summed_up_exactly_where_nobody_else_runs() {
    const COUNT: u32 = 12_000;
    let folder = tempfile::tempdir().unwrap();
    let proof = Proof::in_a_micro_vm(folder.path(), &ShortLived { kind: "names", ..ShortLived::programs(COUNT) }).await;
    assert!(proof.drops("detail_map_overflow") > 0);
    // The script's own two, of which one has ended, stand in their cgroup's row or, if their keys found no place, in the overflow row.
    let all = |name: &str| proof.own(name) + proof.overflow(name) + proof.counter("/", name);
    assert_eq!([all("forks"), all("exits")], [u64::from(COUNT) + 2, u64::from(COUNT) + 1]);
    let cpu_ns = proof.own("cpu_ns") + proof.overflow("cpu_ns");
    let off_by = cpu_ns.abs_diff(proof.cpu_ns);
    assert!(off_by * 100 <= proof.cpu_ns, "{cpu_ns} ns, and the cgroup's counters say {} ns", proof.cpu_ns);
}

#[tokio::test]
async fn eight_thousand_living_names_lose_attribution_and_never_the_sums() {
    // A sample has 7,168 keys: the names of at least so many find no place.
    const COUNT: u64 = 8_000;
    const WITHOUT_PLACE: u64 = COUNT - 7_168;
    let _alone = HOST.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let load = binaries::compiled("load.c", folder.path());
    let once = Once::measuring(&folder.path().join("agent"), "").await;
    let group = Group::new("crowd");
    let mut crowd = Running::start("crowd", group.inside(&load).args(["crowd", &COUNT.to_string()]), folder.path());
    crowd.line_with("crowded", TIMEOUT).await;
    // The last of them gets its name and falls asleep.
    let sleeps = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(crowd-") && stat.contains(") S ")
    };
    let all_sleep =
        || async { (group.processes().iter().filter(|pid| sleeps(pid)).count() as u64 == COUNT).then_some(()) };
    wait::until("all to stand still", TIMEOUT, all_sleep).await;
    let cpu_ns = group.cpu_ns();
    let seen = once.heartbeat().await;
    let key = group.key();
    let of = |key: &str, name: &str| {
        let row = seen.row(key);
        row[name].as_u64().unwrap_or_else(|| panic!("{name} was not measured: {row}"))
    };
    assert!(seen.drops("detail_key_overflow") >= WITHOUT_PLACE, "{}", seen.drops("detail_key_overflow"));
    // Others on this host found no place either: they are in the overflow row as well, but no more than they were.
    let both = |name: &str| of(&key, name) + of("overflow", name);
    for name in ["live_processes", "live_threads"] {
        assert!(of(&key, name) <= 7_168, "{name}");
        assert!(both(name) > COUNT, "{name}: {} of {COUNT} and one more", both(name));
    }
    assert!(both("forks") >= COUNT && of(&key, "forks") <= COUNT + 1, "{} in all", both("forks"));
    assert!(both("cpu_ns") >= cpu_ns / 100 * 99, "{} ns of {cpu_ns} ns", both("cpu_ns"));
    assert!(of(&key, "cpu_ns") <= cpu_ns / 100 * 101, "{} ns of {cpu_ns} ns", of(&key, "cpu_ns"));
    assert!(crowd.terminate(TIMEOUT).await.success());
}
