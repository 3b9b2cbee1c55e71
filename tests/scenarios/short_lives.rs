//! Processes that live for a millisecond are counted to the last one, and their CPU time is what the kernel's own books of their
//! cgroup say: natively, and with the identical binary on another kernel.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::lives::{Lives, Proof};

#[tokio::test]
async fn twenty_thousand_short_lives_are_counted_exactly_and_to_the_nanosecond() {
    const COUNT: u32 = 20_000;
    let proof = Proof::on_this_host(&Lives::programs(COUNT)).await;
    assert!(proof.cpu_ns / u64::from(COUNT) < 3_000_000, "no short lives: {} ns for all", proof.cpu_ns);
    proof.assert_exact(COUNT);
}

#[tokio::test]
async fn a_flood_of_names_loses_attribution_and_never_the_sums() {
    // The map holds 8,192 keys: thousands of these names find no place.
    const COUNT: u32 = 12_000;
    let proof = Proof::on_this_host(&Lives { kind: "names", ..Lives::programs(COUNT) }).await;
    assert!(proof.drops("detail_fold_overflow") > 0);
    assert!(proof.own("exits") < u64::from(COUNT));
    // What others on this host did meanwhile may be in the rest as well, but no more than they were.
    let exits = proof.own("exits") + proof.rest("exits");
    assert!(exits >= u64::from(COUNT), "{exits}");
    let cpu_ns = proof.own("cpu_ns") + proof.rest("cpu_ns");
    assert!(cpu_ns >= proof.cpu_ns / 100 * 99, "{cpu_ns} ns of {} ns", proof.cpu_ns);
}

#[tokio::test]
async fn the_same_binary_counts_exactly_on_another_kernel() {
    const COUNT: u32 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let proof = Proof::in_a_micro_vm(folder.path(), &Lives::programs(COUNT)).await;
    proof.assert_exact(COUNT);
}

#[tokio::test]
async fn a_flood_of_names_is_summed_up_exactly_where_nobody_else_runs() {
    const COUNT: u32 = 12_000;
    let folder = tempfile::tempdir().unwrap();
    let proof = Proof::in_a_micro_vm(folder.path(), &Lives { kind: "names", ..Lives::programs(COUNT) }).await;
    assert!(proof.drops("detail_fold_overflow") > 0);
    assert_eq!(proof.own("forks") + proof.rest("forks"), u64::from(COUNT));
    assert_eq!(proof.own("exits") + proof.rest("exits"), u64::from(COUNT));
    let cpu_ns = proof.own("cpu_ns") + proof.rest("cpu_ns");
    let off_by = cpu_ns.abs_diff(proof.cpu_ns);
    assert!(off_by * 100 <= proof.cpu_ns, "{cpu_ns} ns, and the cgroup's books say {} ns", proof.cpu_ns);
}
