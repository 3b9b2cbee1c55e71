#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    inventory::sample,
    rollup::{Extremes, Histogram, Rollup},
};
use recommender::demand::{Demand, Levels, Record};
use serde_json::json;

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_795_000_000 / 3_600 * 3_600 + hour * 3_600).unwrap()
}

fn span(from: i64, to: i64) -> Span {
    Span { from: at(from), to: at(to) }
}

fn was(from: i64, until: Option<i64>, state: InstanceState, instance_type: &str, launched: i64) -> Was {
    let instance = Instance {
        state,
        instance_type: Some(instance_type.to_owned()),
        launched_at: Some(at(launched)),
        ..sample::instance()
    };
    Was::of(at(from), until.map(at), Some(instance))
}

#[test]
fn a_machine_has_had_its_type_since_it_was_last_started_or_listed_so() {
    let (running, stopped) = (InstanceState::Running, InstanceState::Stopped);
    let first = || was(10, Some(20), running.clone(), "m5.large", 2);
    assert_eq!(typed_since(&[], at(30)), None);
    assert_eq!(typed_since(&[first()], at(5)), None, "it was not listed then");
    assert_eq!(typed_since(&[first()], at(15)), Some(at(2)), "while it runs nobody can change its type");
    let was_off = || was(10, Some(20), stopped.clone(), "m5.large", 2);
    assert_eq!(typed_since(&[was_off()], at(15)), Some(at(10)), "it may have been changed before that list");
    let same = || was(20, Some(30), stopped.clone(), "m5.large", 2);
    assert_eq!(typed_since(&[first(), same()], at(25)), Some(at(2)));
    let other = || was(30, None, running.clone(), "m5.xlarge", 29);
    assert_eq!(typed_since(&[first(), same(), other()], at(40)), Some(at(29)), "its start made it another one");
    assert_eq!(typed_since(&[first(), same(), other()], at(29)), Some(at(2)));
}

#[test]
fn a_machine_was_stopped_only_where_a_list_says_so() {
    let versions = [
        was(0, Some(10), InstanceState::Running, "m5.large", 0),
        was(10, Some(20), InstanceState::Stopped, "m5.large", 0),
        was(20, Some(24), InstanceState::Running, "m5.large", 20),
        was(24, None, InstanceState::Stopped, "m5.large", 20),
    ];
    assert_eq!(stopped(&versions, &[], at(30)), [span(10, 20), span(24, 30)]);
    assert_eq!(stopped(&versions, &[], at(15)), [span(10, 15)]);
    let gaps = [span(5, 11), span(13, 14), span(28, 1_000)];
    assert_eq!(stopped(&versions, &gaps, at(30)), [span(11, 13), span(14, 20), span(24, 28)]);
    assert_eq!(stopped(&versions, &[span(0, 1_000)], at(30)), []);
}

/// An hour of which everything was measured.
fn whole_hour() -> Rollup {
    let sum = |grown: u64| Sum(grown, HOUR_MS);
    let mut node = Activity::default();
    for (counter, grown) in [
        (Counter::Cpu, 3_600_000_000_000),
        (Counter::CpuSteal, 1_500_001),
        (Counter::NetworkReceived, 7_200),
        (Counter::NetworkSent, 3_600_001),
        (Counter::DiskRead, 3_600),
        (Counter::DiskWritten, 7_200),
        (Counter::OomKills, 2),
    ] {
        node.sums.insert(counter, sum(grown));
    }
    node.milli_cores = Histogram::default();
    node.milli_cores.add(1_000, HOUR_MS);
    node.peaks.insert(Peak::Memory, 5 << 30);
    node.resources.insert(Resource::CpuCapacity, sum(4 * HOUR_MS * NS_PER_MS));
    node.extremes = Some(Extremes {
        disk_operations: Some(sum(36_000)),
        swap_pages: Some(sum(0)),
        memory_sampled_ms: HOUR_MS,
        network_per_s: Some(90_000),
        disk_per_s: Some(1),
        disk_operations_per_s: Some(100),
    });
    let rows = json!([
        {"subject": {"kind": "workload", "class": "workload", "key": "/a"},
         "activity": {"milli_cores": {}, "memory_mib": {},
                      "sums": {"cpu": [96, HOUR_MS], "run_queue_delay": [1_000_001, HOUR_MS], "cpu_throttled": [7_000_000, HOUR_MS]}}},
        {"subject": {"kind": "workload", "class": "kernel", "key": "/"},
         "activity": {"milli_cores": {}, "memory_mib": {}, "sums": {"cpu": [4, HOUR_MS]}}},
        {"subject": {"kind": "run", "boot": "6f1c1c1e-0000-4000-8000-000000000001", "run": "7"},
         "activity": {"milli_cores": {}, "memory_mib": {}, "sums": {"cpu": [50, HOUR_MS], "run_queue_delay": [500, HOUR_MS]}}},
    ]);
    let whole = json!({"version": 3, "heartbeats": 120, "node": node, "subjects": rows});
    serde_json::from_value(whole).unwrap()
}

#[test]
fn an_hour_has_what_its_rollup_tells() {
    let told = hour(at(0), &Summary::from(&whole_hour()));
    // Of its bucket the highest value is told.
    let milli_cores: Levels = [(1_023, HOUR_MS)].into_iter().collect();
    let expected = Hour {
        begin: at(0),
        milli_cores,
        cpus: Some(4),
        memory_peak_bytes: Some(5 << 30),
        // Rounded up. The run is another view of the workload.
        run_queue_delay_ms: Some(2),
        throttled_ms: Some(7),
        steal_ms: Some(2),
        oom_kills: Some(2),
        swap_pages: Some(0),
        network: Some(Flow { mean: 1_001, peak: 90_000 }),
        // A peak is never below the mean.
        disk: Some(Flow { mean: 3, peak: 3 }),
        disk_operations: Some(Flow { mean: 10, peak: 100 }),
        rdma_bytes: None,
    };
    assert_eq!(told, expected);
}

#[test]
fn what_was_measured_for_a_part_of_the_hour_is_not_known() {
    let mut part = whole_hour();
    let short = HOUR_MS / 100 * 94;
    part.node.sums.values_mut().for_each(|sum| sum.1 = short);
    let told = hour(at(0), &Summary::from(&part));
    assert_eq!((told.network, told.disk, told.steal_ms, told.oom_kills), (None, None, None, None));
    assert_eq!(told.memory_peak_bytes, Some(5 << 30));

    let mut unsampled = whole_hour();
    let extremes = unsampled.node.extremes.as_mut().unwrap();
    (extremes.memory_sampled_ms, extremes.swap_pages) = (short, Some(Sum(0, short)));
    let told = hour(at(0), &Summary::from(&unsampled));
    assert_eq!((told.memory_peak_bytes, told.swap_pages), (None, None));

    // As a version before added it up.
    let mut before = whole_hour();
    before.node.extremes = None;
    let told = hour(at(0), &Summary::from(&before));
    assert_eq!((told.memory_peak_bytes, told.swap_pages, told.network, told.disk_operations), (None, None, None, None));
    assert_eq!((told.oom_kills, told.steal_ms), (Some(2), Some(2)));
}

#[test]
fn cpus_are_known_if_they_were_as_many_for_all_of_the_time() {
    let told = |capacity_ns: u64, ms: u64| {
        let mut rollup = whole_hour();
        rollup.node.resources.insert(Resource::CpuCapacity, Sum(capacity_ns, ms));
        hour(at(0), &Summary::from(&rollup)).cpus
    };
    let one = HOUR_MS * NS_PER_MS;
    assert_eq!([told(8 * one, HOUR_MS), told(4 * one, HOUR_MS / 2)], [Some(8), Some(8)]);
    assert_eq!([told(6 * one + one / 2, HOUR_MS), told(0, HOUR_MS), told(0, 0)], [None; 3]);
    let mut without = whole_hour();
    without.node.resources.clear();
    assert_eq!(hour(at(0), &Summary::from(&without)).cpus, None);
}

#[test]
fn bytes_past_the_sockets_count_that_were_seen_in_a_part_of_the_hour() {
    let told = |received, sent: Option<Sum>| {
        let mut rollup = whole_hour();
        rollup.node.sums.insert(Counter::RdmaReceived, received);
        rollup.node.sums.extend(sent.map(|sent| (Counter::RdmaSent, sent)));
        hour(at(0), &Summary::from(&rollup)).rdma_bytes
    };
    assert_eq!(told(Sum(3, HOUR_MS), Some(Sum(4, HOUR_MS))), Some(7));
    assert_eq!(told(Sum(3, HOUR_MS), Some(Sum(4, HOUR_MS / 2))), Some(7));
    assert_eq!(told(Sum(3, HOUR_MS / 2), None), Some(3));
    assert_eq!(told(Sum(0, HOUR_MS), Some(Sum(0, HOUR_MS))), Some(0));
    assert_eq!(told(Sum(0, HOUR_MS), Some(Sum(0, HOUR_MS / 2))), None, "of a part none is not none of all");
}

#[test]
fn hours_count_since_sweeper_and_agent_told_all_that_they_tell() {
    use Detail::{Full, MemoryNotSampled, Old};
    let made = |details: &[Detail]| -> Vec<(Detail, Hour)> {
        let rollup = |detail| {
            let mut rollup = whole_hour();
            match detail {
                Old => rollup.node.extremes = None,
                MemoryNotSampled => rollup.node.extremes.as_mut().unwrap().memory_sampled_ms = 0,
                Full => {}
            }
            rollup
        };
        let told =
            |(number, detail)| (Detail::of(&rollup(detail).node), hour(at(number), &Summary::from(&rollup(detail))));
        (0..).zip(details.iter().copied()).map(told).collect()
    };
    let left = |details: &[Detail]| -> Vec<Timestamp> {
        let (earlier, since) = by_detail(made(details));
        assert_eq!(earlier.len() + since.len(), details.len(), "none is lost");
        since.iter().map(|hour| hour.begin).collect()
    };
    assert_eq!(left(&[Old, Old, Full, Full]), [at(2), at(3)]);
    assert_eq!(left(&[Old, MemoryNotSampled, Full, MemoryNotSampled, Old, Full]), [2, 3, 4, 5].map(at), "gaps stay");
    assert_eq!(left(&[Old, MemoryNotSampled, MemoryNotSampled]), [at(1), at(2)]);
    assert_eq!(left(&[Old, Old]), [at(0), at(1)], "what they lack is told");
    assert_eq!(left(&[]), []);
    // 23 days of before, and a week since.
    let details: Vec<Detail> = std::iter::repeat_n(Old, 23 * 24).chain(std::iter::repeat_n(Full, 7 * 24)).collect();
    let (earlier, hours) = by_detail(made(&details));
    let record = Record { earlier, hours, stopped: Vec::new(), zone: jiff::tz::TimeZone::UTC };
    assert_eq!(Demand::of(&record).memory_peak_bytes, Some(5 << 30));
}

#[test]
fn waits_are_known_if_the_rows_that_tell_them_had_nearly_all_of_the_cpu_time() {
    let mut most = whole_hour();
    most.subjects[1].activity.sums.insert(Counter::Cpu, Sum(6, HOUR_MS));
    // 96 of 102.
    let told = hour(at(0), &Summary::from(&most));
    assert_eq!((told.run_queue_delay_ms, told.throttled_ms), (None, Some(7)));
}
