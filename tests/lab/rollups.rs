//! What rollups must say, from the heartbeats that are stored: by subtraction, period by period, of one row's CPU time.

use heartbeat::{BootId, NodeId, wire::Heartbeat};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use sweeper::{
    rollup::{Counter, Subject, Sum, Tier},
    store::{RolledUp, Store},
};

/// The key of the row of [`crate::sample::heartbeat`].
const KEY: &str = "/system.slice/batch.service";

/// How many heartbeats a period has, and what the row grew by in how many milliseconds.
type Told = (u64, Option<Sum>);

/// Makes all rollups that are noted, as if it were a day later, and then those of hours, as if it were another day later.
///
/// # Panics
///
/// When the database does not answer, or one comes too late.
pub async fn make_all(store: &Store) {
    for days in [1, 2] {
        make_due(store, Timestamp::now() + SignedDuration::from_hours(24 * days)).await;
    }
}

/// Makes all rollups that are due at this time, and says how many.
///
/// # Panics
///
/// When the database does not answer, or one comes too late.
pub async fn make_due(store: &Store, now: Timestamp) -> u64 {
    let mut made = 0;
    loop {
        let done = store.roll_up(now, Timestamp::UNIX_EPOCH).await.expect("the database answers");
        assert_eq!(done.too_late, 0, "nothing is deleted in this test");
        if done == RolledUp::default() {
            return made;
        }
        made += done.made;
    }
}

/// Asserts that a node's rollups of five minutes and of hours are those of these heartbeats, and no others.
///
/// # Panics
///
/// When they are not.
pub async fn check(store: &Store, node: &NodeId, stored: &[(BootId, Heartbeat)]) {
    for (tier, length_ms) in [(Tier::FiveMinutes, 300_000), (Tier::Hour, 3_600_000)] {
        let found = store.rollups(node, tier, Timestamp::UNIX_EPOCH, Timestamp::MAX).await;
        let found = found.expect("rollups can be read").into_iter().map(|(start, rollup)| {
            let subject = Subject::Workload { class: "workload".to_owned(), key: KEY.to_owned() };
            let sum = rollup.of(&subject).and_then(|activity| activity.sum(Counter::Cpu));
            (start.as_millisecond(), (rollup.heartbeats, sum))
        });
        let found: BTreeMap<i64, Told> = found.collect();
        assert_eq!(found, expected(stored, length_ms), "{node}, {tier:?}");
    }
}

fn expected(stored: &[(BootId, Heartbeat)], length_ms: i64) -> BTreeMap<i64, Told> {
    let in_order: BTreeMap<_, _> = stored.iter().map(|(boot, beat)| ((*boot, beat.sequence), beat)).collect();
    let mut expected = BTreeMap::<i64, Told>::new();
    let mut before: Option<(BootId, &Heartbeat)> = None;
    for ((boot, _), beat) in in_order {
        let now = beat.interval.as_ref().expect("an interval");
        let mut grown = (now.start_boottime_ns == now.counters_since_boottime_ns)
            .then(|| (cpu_ns(beat), now.end_boottime_ns - now.start_boottime_ns));
        if let Some((_, earlier)) = before.filter(|(of, _)| *of == boot) {
            let then = earlier.interval.as_ref().expect("an interval");
            if then.counters_since_boottime_ns == now.counters_since_boottime_ns {
                let is_near = now.start_boottime_ns - then.end_boottime_ns <= 3_600_000_000_000;
                let span_ns = now.end_boottime_ns - then.end_boottime_ns;
                grown = is_near.then(|| (cpu_ns(beat) - cpu_ns(earlier), span_ns));
            }
        }
        let start = (now.end_unix_ms - 1).div_euclid(length_ms) * length_ms;
        let told = expected.entry(start).or_default();
        told.0 += 1;
        if let Some((cpu_ns, span_ns)) = grown {
            let sum = told.1.get_or_insert_default();
            *sum = Sum(sum.0 + cpu_ns, sum.1 + span_ns / 1_000_000);
        }
        before = Some((boot, beat));
    }
    expected
}

fn cpu_ns(beat: &Heartbeat) -> u64 {
    beat.workloads.iter().find(|row| row.key == KEY).and_then(|row| row.cpu_ns).expect("CPU time of the row")
}
