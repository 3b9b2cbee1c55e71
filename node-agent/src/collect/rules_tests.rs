//! New rules sort the rows from the next sample on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::workload::{Class, Row};
use node_agent_ebpf::counter;

/// CPU time by row.
fn cpu(sample: &Sample) -> BTreeMap<(Class, String), u64> {
    let cpu_ns = |row: &Row| row.activity.totals.counters[counter::CPU_NS];
    sample.rows.iter().map(|(class, key, row)| ((class, key.to_owned()), cpu_ns(row))).collect()
}

#[test]
fn new_rules_begin_with_the_next_sample_and_no_counter_runs_backwards() {
    let state = tempfile::tempdir().unwrap();
    let rules_store = Arc::new(RulesStore::start(None, state.path()));
    let (mode, interval, gpu) = (Mode::Proc, Duration::from_secs(1), crate::host::gpu::Options::default());
    let options = SamplerOptions {
        mode,
        interval,
        syscall_classes: false,
        cpu_ppm_of_host: 5_000,
        keep_ptrace: false,
        host_root: "/".into(),
        gpu,
        runtime: crate::host::runtime::Options::default(),
        rules: Arc::clone(&rules_store),
    };
    let mut sampler = Sampler::start(&options).unwrap();
    let first = sampler.read();
    assert_eq!(first.rules_version, "built-in-1");

    // Other names for workloads: the same rows go on.
    rules_store.take(b"version = \"1\"\nbase = \"built-in\"\n");
    let last_before = sampler.read();
    assert_eq!(last_before.rules_version, "built-in-1", "a sample that has begun ends by the rules it began with");
    let second = sampler.read();
    assert_eq!((second.rules_version.as_str(), second.counters_since), ("1", first.counters_since));
    for (key, now) in cpu(&second) {
        assert!(now >= cpu(&last_before).get(&key).copied().unwrap_or(0), "{key:?}");
    }

    // Other housekeeping: nothing is, and the rows begin anew.
    rules_store.take(b"version = \"2\"\n");
    let last = sampler.read();
    assert_eq!((last.rules_version.as_str(), last.counters_since), ("1", first.counters_since));
    let third = sampler.read();
    assert_eq!((third.rules_version.as_str(), third.counters_since), ("2", last.taken));
    assert!(third.rows.iter().all(|(class, _, _)| class != Class::Housekeeping));
    let fourth = sampler.read();
    assert_eq!(fourth.counters_since, last.taken);
    for (key, now) in cpu(&fourth) {
        assert!(now >= cpu(&third).get(&key).copied().unwrap_or(0), "{key:?}");
    }

    // What is refused is said, and counted since the counters began.
    rules_store.take(b"version = \"9\"\n[housekeeping]\nnames = [\"bash\"]\n");
    let fifth = sampler.read();
    assert_eq!(fifth.rules_version, "2");
    assert!(
        fifth
            .capabilities
            .to_wire()
            .iter()
            .any(|capability| capability.name == "rules" && capability.reason.contains("line 3"))
    );
    assert!(fifth.drops.contains(&("detail_rules_refused", 1)));
}
