//! Rollups are those of the heartbeats that are stored, in whatever order these came and whenever the rollups were made.

use super::open;
use heartbeat::{BootId, wire};
use jiff::{SignedDuration, Timestamp};
use lab::{rollups, sample};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use sea_orm::ConnectionTrait as _;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use sweeper::{
    rollup::{Summary, Tier},
    store::{Delivery, RolledUp, Store},
    verdict::{NodeSample, NodeState, Policy, StatePolicy},
};
use tokio::task::JoinSet;

lab::on_both_databases! {
    heartbeats_in_any_order_twice_and_hours_late_come_to_the_same_state_and_rollups,
    what_is_stored_while_rollups_are_made_is_in_them,
    a_rollup_whose_heartbeats_may_be_deleted_stays_as_it_is,
    a_rollup_that_cannot_be_read_holds_nobody_else_up,
    of_a_flood_of_heartbeats_the_newest_are_rolled_up,
    of_an_hour_the_machine_as_a_whole_is_read_without_its_workloads,
}

/// How many histories are told in disorder: `make test-order` asks for 10,000.
fn cases() -> u32 {
    std::env::var("ORDER_CASES").map_or(60, |cases| cases.parse().expect("ORDER_CASES is a number"))
}

/// Two boots of a node with agents that are restarted, clocks that are set, and heartbeats that are lost.
fn history(random: &mut StdRng, number: u32, newest: Timestamp) -> Vec<(BootId, wire::Heartbeat)> {
    let mut history = Vec::new();
    for boot in [2 * number, 2 * number + 1].into_iter().take(random.random_range(1..=2)) {
        let beats = random.random_range(1..60_u64);
        let (mut now_s, mut since_s, mut cpu_ns, mut set_ms) = (random.random_range(0..10_000), None, 0_u64, 0_i64);
        for sequence in 1..=beats {
            // A suspended machine, seldom longer than rollups bridge.
            now_s += if random.random_bool(0.04) { random.random_range(31..5_000) } else { 0 };
            if since_s.is_none() || random.random_bool(0.05) {
                (since_s, cpu_ns) = (Some(now_s), 0);
            }
            if random.random_bool(0.03) {
                set_ms += random.random_range(-900_000..900_000);
            }
            cpu_ns += random.random_range(0..60_000_000_000);
            now_s += 30;
            let end_ms = newest.as_millisecond() - 7 * 3_600_000 + i64::try_from(now_s).unwrap() * 1_000 + set_ms;
            let mut beat = sample::heartbeat(sequence, Timestamp::from_millisecond(end_ms).unwrap());
            let interval = beat.interval.as_mut().unwrap();
            (interval.start_boottime_ns, interval.end_boottime_ns) =
                ((now_s - 30) * 1_000_000_000, now_s * 1_000_000_000);
            interval.counters_since_boottime_ns = since_s.unwrap() * 1_000_000_000;
            beat.workloads[0].cpu_ns = Some(cpu_ns);
            if random.random_bool(0.9) {
                history.push((sample::boot(boot), beat));
            }
        }
    }
    history
}

fn delivery(number: u32, boot: BootId, heartbeats: Vec<wire::Heartbeat>, now: Timestamp) -> Delivery {
    let envelope = sample::envelope(&sample::node(number), boot, &[], now);
    let envelope = wire::Envelope { heartbeats, oldest_retained_sequence: 1, ..envelope };
    Delivery::new(&sample::checked(&envelope), None).unwrap()
}

async fn join(store: &Store, number: u32) {
    let request = sample::join(&sample::node(number), sample::boot(number));
    let token = sweeper::store::TokenHash::of(&format!("token {number}"));
    store.join_node(&request, &token, Timestamp::now()).await.unwrap();
}

async fn heartbeats_in_any_order_twice_and_hours_late_come_to_the_same_state_and_rollups(url: String) {
    let store = open(&url).await;
    let state_policy = StatePolicy::new(Policy::default());
    let now = Timestamp::now();
    for number in 0..cases() {
        let mut random = StdRng::seed_from_u64(number.into());
        join(&store, number).await;
        let history = history(&mut random, number, now);
        let mut arriving = history.clone();
        match number % 4 {
            0 => arriving.shuffle(&mut random),
            1 => arriving.reverse(),
            2 => arriving.rotate_left(history.len() / 2),
            _ => {}
        }
        // Some of them twice.
        arriving.extend(history.iter().filter(|_| random.random_bool(0.1)).cloned());
        while !arriving.is_empty() {
            let group = arriving.split_off(arriving.len().saturating_sub(random.random_range(1..40)));
            let boots: std::collections::BTreeSet<BootId> = group.iter().map(|(boot, _)| *boot).collect();
            let of =
                |boot: BootId| group.iter().filter(move |(of, _)| *of == boot).map(|(_, beat)| beat.clone()).collect();
            let deliveries: Vec<_> = boots.into_iter().map(|boot| delivery(number, boot, of(boot), now)).collect();
            store.commit(&deliveries, &state_policy, now).await.unwrap();
            if random.random_bool(0.4) {
                // Some of what is due, while the most is still to come.
                store.roll_up(now + SignedDuration::from_hours(24), Timestamp::UNIX_EPOCH).await.unwrap();
            }
        }
        rollups::make_all(&store).await;
        let node = sample::node(number);
        rollups::check(&store, &node, &history).await;
        let mut samples: Vec<_> = history.iter().map(|(boot, beat)| NodeSample::of(*boot, beat).unwrap()).collect();
        samples.sort_by_key(NodeSample::order);
        let state = store.node_states(Some(&node.to_string())).await.unwrap().remove(&node);
        assert_eq!(state, NodeState::of(samples, &state_policy), "history {number}");
    }
    assert_eq!(store.rollups_due_since().await.unwrap(), None);
}

async fn what_is_stored_while_rollups_are_made_is_in_them(url: String) {
    const NODES: u32 = 8;
    let store = open(&url).await;
    let now = Timestamp::now();
    let done = Arc::new(AtomicBool::new(false));
    let mut makers = JoinSet::new();
    for _ in 0..2 {
        let (store, done) = (store.clone(), Arc::clone(&done));
        makers.spawn(async move {
            let mut made = 0;
            while !done.load(Ordering::Relaxed) {
                // Whatever was noted a moment ago.
                let later = Timestamp::now() + SignedDuration::from_hours(24);
                made += store.roll_up(later, Timestamp::UNIX_EPOCH).await.unwrap().made;
                tokio::task::yield_now().await;
            }
            made
        });
    }
    let mut senders = JoinSet::new();
    for number in 0..NODES {
        join(&store, number).await;
        let store = store.clone();
        senders.spawn(async move {
            let (boot, policy) = (sample::boot(number), StatePolicy::new(Policy::default()));
            let beats = sample::envelope(&sample::node(number), boot, &(1..=200).collect::<Vec<_>>(), now).heartbeats;
            let mut arriving: Vec<_> = beats.clone();
            arriving.shuffle(&mut StdRng::seed_from_u64(number.into()));
            for few in arriving.chunks(3) {
                store.commit(&[delivery(number, boot, few.to_vec(), now)], &policy, now).await.unwrap();
            }
            beats.into_iter().map(|beat| (boot, beat)).collect::<Vec<_>>()
        });
    }
    let sent = senders.join_all().await;
    done.store(true, Ordering::Relaxed);
    let made: u64 = makers.join_all().await.into_iter().sum();
    assert!(made > u64::from(NODES) * 20, "they were made while heartbeats came: {made}");
    rollups::make_all(&store).await;
    for of_node in sent {
        let (boot, _) = of_node[0];
        let number = (0..NODES).find(|number| sample::boot(*number) == boot).unwrap();
        rollups::check(&store, &sample::node(number), &of_node).await;
    }
}

async fn a_rollup_whose_heartbeats_may_be_deleted_stays_as_it_is(url: String) {
    let store = open(&url).await;
    join(&store, 1).await;
    let (policy, boot) = (StatePolicy::new(Policy::default()), sample::boot(1));
    // Two days ago, the middle of it later.
    let then = Timestamp::from_second(Timestamp::now().as_second() / 3_600 * 3_600 - 48 * 3_600).unwrap();
    let beats = sample::envelope(&sample::node(1), boot, &(1..=10).collect::<Vec<_>>(), then).heartbeats;
    let (late, first): (Vec<_>, Vec<_>) = beats.iter().cloned().partition(|beat| beat.sequence == 5);
    store.commit(&[delivery(1, boot, first.clone(), then)], &policy, then).await.unwrap();
    let first: Vec<_> = first.into_iter().map(|beat| (boot, beat)).collect();
    rollups::make_all(&store).await;
    rollups::check(&store, &sample::node(1), &first).await;

    // It comes when the others are gone.
    store.delete_heartbeats_before(then + SignedDuration::from_hours(1)).await.unwrap();
    store.commit(&[delivery(1, boot, late.clone(), then)], &policy, then).await.unwrap();
    let (now, retention) = (Timestamp::now() + SignedDuration::from_hours(1), then + SignedDuration::from_hours(1));
    assert_eq!(store.roll_up(now, retention).await.unwrap(), RolledUp { too_late: 1, ..RolledUp::default() });
    rollups::check(&store, &sample::node(1), &first).await;
    // Rollups have a retention of their own.
    assert_eq!(store.delete_rollups_before(then).await.unwrap(), 2);
    let left = store.rollups(&sample::node(1), Tier::FiveMinutes, Timestamp::UNIX_EPOCH, Timestamp::MAX).await;
    assert_eq!(left.unwrap(), []);
}

async fn a_rollup_that_cannot_be_read_holds_nobody_else_up(url: String) {
    let store = open(&url).await;
    let (policy, now) = (StatePolicy::new(Policy::default()), Timestamp::now());
    let mut sent = Vec::new();
    for number in [1, 2] {
        join(&store, number).await;
        let boot = sample::boot(number);
        let beats = sample::envelope(&sample::node(number), boot, &(1..=40).collect::<Vec<_>>(), now).heartbeats;
        store.commit(&[delivery(number, boot, beats.clone(), now)], &policy, now).await.unwrap();
        sent.push(beats.into_iter().map(|beat| (boot, beat)).collect::<Vec<_>>());
    }
    let at = |hours| now + SignedDuration::from_hours(hours);
    assert!(rollups::make_due(&store, at(1)).await >= 8);
    let damage = format!(
        "UPDATE rollups SET rollup = (SELECT message FROM heartbeats LIMIT 1) WHERE tier = 300 AND node_id = '{}'",
        sample::node(1)
    );
    store.connection().execute_unprepared(&damage).await.unwrap();
    rollups::make_due(&store, at(24)).await;
    rollups::check(&store, &sample::node(2), &sent[1]).await;
    let hours = store.rollups(&sample::node(1), Tier::Hour, Timestamp::UNIX_EPOCH, Timestamp::MAX).await;
    assert_eq!(hours.unwrap(), [], "an hour without one of its parts would be wrong");
    assert!(rollups::make_due(&store, at(48)).await > 0, "it is tried again later");
}

async fn of_a_flood_of_heartbeats_the_newest_are_rolled_up(url: String) {
    let store = open(&url).await;
    let (policy, boot) = (StatePolicy::new(Policy::default()), sample::boot(1));
    join(&store, 1).await;
    let begin_ms = Timestamp::now().as_millisecond() / 300_000 * 300_000;
    let beats: Vec<_> = (1..=1_100_i64)
        .map(|sequence| {
            let end = Timestamp::from_millisecond(begin_ms + sequence * 100).unwrap();
            sample::heartbeat(sequence.unsigned_abs(), end)
        })
        .collect();
    let now = Timestamp::from_millisecond(begin_ms + 110_000).unwrap();
    for few in beats.chunks(256) {
        store.commit(&[delivery(1, boot, few.to_vec(), now)], &policy, now).await.unwrap();
    }
    rollups::make_all(&store).await;
    for tier in [Tier::FiveMinutes, Tier::Hour] {
        let made = store.rollups(&sample::node(1), tier, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        assert_eq!(made.iter().map(|(_, rollup)| rollup.heartbeats).collect::<Vec<_>>(), [1_024]);
    }
}

async fn of_an_hour_the_machine_as_a_whole_is_read_without_its_workloads(url: String) {
    let store = open(&url).await;
    let (policy, boot, node) = (StatePolicy::new(Policy::default()), sample::boot(1), sample::node(1));
    join(&store, 1).await;
    let hour_s = Timestamp::now().as_second() / 3_600 * 3_600;
    for number in 0..5_i64 {
        let end = |beat: i64| Timestamp::from_second(hour_s + number * 3_600 + beat * 30).unwrap();
        let beats = (1..=4).map(|beat| {
            let sequence = (number * 4 + beat).unsigned_abs();
            let mut heartbeat = sample::heartbeat(sequence, end(beat));
            heartbeat.workloads[0].run_queue_delay_ns = Some(sequence * 1_000);
            heartbeat
        });
        store.commit(&[delivery(1, boot, beats.collect(), end(4))], &policy, end(4)).await.unwrap();
    }
    rollups::make_all(&store).await;
    let all = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
    let made = store.rollups(&node, Tier::Hour, all.0, all.1).await.unwrap();
    assert_eq!(made.len(), 5);
    let expected: Vec<_> = made.iter().map(|(begin, rollup)| (*begin, Summary::from(rollup))).collect();
    assert!(expected.iter().all(|(_, summary)| summary.run_queue_delay_ns.is_some()), "{expected:?}");

    let garbage = "(SELECT message FROM heartbeats LIMIT 1)";
    let as_long = if url.starts_with("sqlite") {
        "zeroblob(length(rollup))"
    } else {
        "decode(repeat('00', length(rollup)), 'hex')"
    };
    let of = |hour: usize| format!("WHERE tier = 3600 AND start_unix_ms = {}", made[hour].0.as_millisecond());
    for change in [
        // The first as a version before 0035 made it, the second and the third as such a version has made them anew, of more heartbeats and of as many; and of the
        // fourth only the summary can be read.
        format!("UPDATE rollups SET summary = NULL, summary_heartbeats = NULL, summary_of_bytes = NULL {}", of(0)),
        format!("UPDATE rollups SET heartbeats = heartbeats + 1, summary = {garbage} {}", of(1)),
        format!("UPDATE rollups SET summary_of_bytes = summary_of_bytes + 1, summary = {garbage} {}", of(2)),
        format!("UPDATE rollups SET rollup = {as_long} {}", of(3)),
    ] {
        assert_eq!(store.connection().execute_unprepared(&change).await.unwrap().rows_affected(), 1, "{change}");
    }
    let read = store.packed_summaries(&[node.to_string()], all.0, all.1).await.unwrap();
    let read: Vec<_> = read
        .into_iter()
        .map(|((of, begin), packed)| {
            assert_eq!(of, node.to_string());
            (Timestamp::from_millisecond(begin).unwrap(), packed.unpack().unwrap())
        })
        .collect();
    assert_eq!(read, expected);
    let nodes: Vec<_> = expected.into_iter().map(|(begin, summary)| (begin, summary.node)).collect();
    assert_eq!(store.node_hours(&node, all.0, all.1).await.unwrap(), nodes);
}
