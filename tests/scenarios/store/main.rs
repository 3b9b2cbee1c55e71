//! The store keeps its promises, the same ones on SQLite and on a real PostgreSQL server.
//!
//! Every case below runs twice, each time over an empty database of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod catalogues;
mod cost_days;
mod group;
mod intervals;
mod protection;
mod rollups;
mod schema;
mod steps;
mod unit_prices;

use heartbeat::{BootId, NodeId};
use jiff::{SignedDuration, Timestamp};
use lab::sample;
use model::Provider;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use std::collections::BTreeSet;
use std::time::Duration;
use sweeper::{
    inventory::Scope,
    store::{Lease, Store, Stored, TokenHash},
    work_unit::WorkUnit,
};

lab::on_both_databases! {
    a_heartbeat_is_stored_once_however_often_it_is_sent,
    the_watermark_stops_at_a_gap_and_moves_on_once_it_is_filled,
    what_the_sender_discarded_is_counted_as_lost_and_the_watermark_moves_over_it,
    a_sender_cannot_discard_what_it_has_not_sent,
    boots_are_counted_apart,
    two_sweepers_may_take_in_the_same_node_at_once,
    random_deliveries_agree_with_a_model,
    heartbeats_come_back_as_they_were_sent_in_the_order_of_their_ends,
    retention_deletes_what_is_old_and_does_not_take_it_in_again,
    a_node_joins_again_and_its_earlier_token_is_void,
    of_several_who_set_a_setting_at_once_one_wins_and_all_learn_which,
    several_sweepers_may_migrate_at_once,
    of_several_replicas_each_scope_is_claimed_by_one,
    a_lease_that_has_run_out_passes_to_another_and_is_not_renewed,
    a_lease_that_is_renewed_lasts_and_one_that_is_released_is_free_at_once,
    an_answer_is_as_old_as_the_database_says_whatever_the_clock_of_who_stored_it,
}

async fn open(url: &str) -> Store {
    let store = Store::connect(url).await.unwrap();
    store.migrate().await.unwrap();
    store
}

async fn an_answer_is_as_old_as_the_database_says_whatever_the_clock_of_who_stored_it(url: String) {
    let (store, node) = (open(&url).await, sample::node(1));
    for (sequence, off) in [(1, SignedDuration::from_hours(1)), (2, SignedDuration::from_hours(-1))] {
        let question = format!("question-{sequence}");
        let asked_at = store.ask(&node, &question).await.unwrap();
        let mut envelope = sample::envelope(&node, sample::boot(1), &[sequence], Timestamp::now());
        envelope.heartbeats[0].answers.clone_from(&question);
        store.store_heartbeats(&sample::checked(&envelope), Timestamp::now() + off).await.unwrap();
        let answered = store.answer_to(&node, &question, asked_at).await.unwrap().unwrap();
        // Told by the millisecond, and what has passed since it began is taken off again.
        let earliest = asked_at - SignedDuration::from_millis(2);
        let latest = store.now().await.unwrap();
        let received_at = answered.received_at;
        assert!(earliest <= received_at && received_at <= latest, "{earliest} <= {received_at} <= {latest}");
    }
}

/// Sends `sequences` of one node and boot, with `oldest` as what the sender still holds.
async fn send(store: &Store, boot: BootId, sequences: &[u64], oldest: u64) -> Stored {
    send_at(store, boot, sequences, oldest, Timestamp::now()).await
}

/// The same with the end of the newest.
async fn send_at(store: &Store, boot: BootId, sequences: &[u64], oldest: u64, end: Timestamp) -> Stored {
    let mut envelope = sample::envelope(&sample::node(1), boot, sequences, end);
    envelope.oldest_retained_sequence = oldest;
    store.store_heartbeats(&sample::checked(&envelope), Timestamp::now()).await.unwrap()
}

async fn everything(store: &Store, node: &NodeId) -> Vec<(BootId, u64)> {
    let all = store.heartbeats(node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
    all.into_iter().map(|stored| (stored.boot_id, stored.heartbeat.sequence)).collect()
}

fn answer(stored: u32, duplicates: u32, contiguous_sequence: u64, lost: u64) -> Stored {
    Stored { stored, duplicates, contiguous_sequence, lost }
}

async fn a_heartbeat_is_stored_once_however_often_it_is_sent(url: String) {
    let store = open(&url).await;
    let boot = sample::boot(1);
    assert_eq!(send(&store, boot, &[1, 2, 3], 1).await, answer(3, 0, 3, 0));
    assert_eq!(send(&store, boot, &[1, 2, 3], 1).await, answer(0, 3, 3, 0));
    assert_eq!(send(&store, boot, &[3, 4, 4], 3).await, answer(1, 2, 4, 0));
    assert_eq!(everything(&store, &sample::node(1)).await.len(), 4);
}

async fn the_watermark_stops_at_a_gap_and_moves_on_once_it_is_filled(url: String) {
    let store = open(&url).await;
    let boot = sample::boot(1);
    assert_eq!(send(&store, boot, &[1, 2, 4, 5], 1).await.contiguous_sequence, 2);
    assert_eq!(send(&store, boot, &[7], 1).await.contiguous_sequence, 2);
    assert_eq!(send(&store, boot, &[4], 1).await, answer(0, 1, 2, 0));
    assert_eq!(send(&store, boot, &[3], 1).await.contiguous_sequence, 5);
    assert_eq!(send(&store, boot, &[6], 1).await, answer(1, 0, 7, 0));
    // Many envelopes behind one gap: more than the store reads at once.
    for first in (9..4_000).step_by(200) {
        let sequences: Vec<u64> = (first..first + 200).collect();
        assert_eq!(send(&store, boot, &sequences, 1).await.contiguous_sequence, 7);
    }
    assert_eq!(send(&store, boot, &[8], 1).await.contiguous_sequence, 4_008);
}

async fn what_the_sender_discarded_is_counted_as_lost_and_the_watermark_moves_over_it(url: String) {
    let store = open(&url).await;
    let boot = sample::boot(1);
    assert_eq!(send(&store, boot, &[1, 2, 5], 1).await, answer(3, 0, 2, 0));
    // 3, 4 and 6 to 9 never arrived; 5 did.
    assert_eq!(send(&store, boot, &[10, 11], 10).await, answer(2, 0, 11, 6));
    assert_eq!(send(&store, boot, &[12], 10).await, answer(1, 0, 12, 0));
    // Too late: it has been dropped.
    assert_eq!(send(&store, boot, &[3], 3).await, answer(0, 1, 12, 0));
    // Dropped from the spool while it was on its way: it did arrive, so it is not lost.
    assert_eq!(send(&store, boot, &[13, 14, 15], 15).await, answer(3, 0, 15, 0));
}

async fn a_sender_cannot_discard_what_it_has_not_sent(url: String) {
    let store = open(&url).await;
    let boot = sample::boot(1);
    assert_eq!(send(&store, boot, &[1], u64::MAX).await, answer(1, 0, 1, 0));
    assert_eq!(send(&store, boot, &[2], 2).await, answer(1, 0, 2, 0));
    assert_eq!(send(&store, boot, &[3], 0).await, answer(1, 0, 3, 0));
}

async fn boots_are_counted_apart(url: String) {
    let store = open(&url).await;
    send(&store, sample::boot(1), &[1, 2, 3], 1).await;
    assert_eq!(send(&store, sample::boot(2), &[1], 1).await, answer(1, 0, 1, 0));
    let joined = |boot| sample::join(&sample::node(1), sample::boot(boot));
    for (boot, last_sequence) in [(1, 3), (2, 1), (3, 0)] {
        let joined = store.join_node(&joined(boot), &TokenHash::of("token"), Timestamp::now()).await.unwrap();
        assert_eq!(joined.last_sequence, last_sequence, "boot {boot}");
    }
}

async fn two_sweepers_may_take_in_the_same_node_at_once(url: String) {
    const SENT: u64 = 200;
    let sweepers = [open(&url).await, Store::connect(&url).await.unwrap()];
    let boot = sample::boot(1);
    let mut tasks = tokio::task::JoinSet::new();
    // Each envelope overlaps its neighbours, and each goes to both sweepers.
    for first in (1..=SENT).step_by(10) {
        for store in &sweepers {
            let (store, sequences) = (store.clone(), (first..(first + 20).min(SENT + 1)).collect::<Vec<_>>());
            tasks.spawn(async move { send(&store, boot, &sequences, 1).await });
        }
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().map(|answer| u64::from(answer.stored)).sum::<u64>(), SENT);
    assert_eq!(answers.iter().map(|answer| answer.contiguous_sequence).max(), Some(SENT));
    assert_eq!(everything(&sweepers[0], &sample::node(1)).await.len(), usize::try_from(SENT).unwrap());
    assert_eq!(send(&sweepers[1], boot, &[SENT], 1).await, answer(0, 1, SENT, 0));
}

async fn random_deliveries_agree_with_a_model(url: String) {
    let store = open(&url).await;
    let boot = sample::boot(1);
    let mut random = StdRng::seed_from_u64(0x005e_edad);
    let (mut arrived, mut lost, mut mark) = (BTreeSet::new(), 0, 0);
    for round in 0..150 {
        let oldest = random.random_range(1..=30 + round / 2);
        let held: Vec<u64> = (oldest..oldest + 40).collect();
        let batch: Vec<u64> = held.choose_multiple(&mut random, 8).copied().collect();
        let answer = send(&store, boot, &batch, oldest).await;

        let fresh: BTreeSet<u64> =
            batch.into_iter().filter(|sequence| *sequence > mark && !arrived.contains(sequence)).collect();
        assert_eq!(usize::try_from(answer.stored).unwrap(), fresh.len(), "round {round}");
        arrived.extend(fresh);
        let discarded = (mark + 1..oldest).filter(|sequence| !arrived.contains(sequence)).count();
        assert_eq!(answer.lost, u64::try_from(discarded).unwrap(), "round {round}");
        lost += answer.lost;
        mark = mark.max(oldest - 1);
        while arrived.contains(&(mark + 1)) {
            mark += 1;
        }
        assert_eq!(answer.contiguous_sequence, mark, "round {round}");
    }
    let stored: BTreeSet<u64> =
        everything(&store, &sample::node(1)).await.into_iter().map(|(_, sequence)| sequence).collect();
    assert_eq!(stored, arrived);
    assert_eq!(u64::try_from(stored.range(..=mark).count()).unwrap() + lost, mark);
}

async fn heartbeats_come_back_as_they_were_sent_in_the_order_of_their_ends(url: String) {
    let store = open(&url).await;
    let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
    let node = sample::node(1);
    let envelope = sample::envelope(&node, sample::boot(1), &[3, 1, 2], now);
    let other = sample::envelope(&sample::node(2), sample::boot(1), &[1], now);
    for envelope in [&envelope, &other] {
        store.store_heartbeats(&sample::checked(envelope), now).await.unwrap();
    }
    let read = store.heartbeats(&node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
    let mut sent = envelope.heartbeats;
    sent.sort_by_key(|heartbeat| heartbeat.sequence);
    assert_eq!(read.into_iter().map(|stored| stored.heartbeat).collect::<Vec<_>>(), sent);

    // The window holds its begin and not its end.
    let interval = SignedDuration::from_millis(sample::INTERVAL_MS);
    let window = store.heartbeats(&node, now - interval * 2, now).await.unwrap();
    assert_eq!(window.iter().map(|stored| stored.heartbeat.sequence).collect::<Vec<_>>(), [1, 2]);
}

async fn retention_deletes_what_is_old_and_does_not_take_it_in_again(url: String) {
    let store = open(&url).await;
    let boot = sample::boot(1);
    // Of before the first day that has a partition of its own: those are dropped, and not deleted from.
    let then = Timestamp::now() - SignedDuration::from_hours(48);
    assert_eq!(send_at(&store, boot, &[1, 2, 3, 4], 1, then).await.stored, 4);
    let interval = SignedDuration::from_millis(sample::INTERVAL_MS);
    assert_eq!(store.delete_heartbeats_before(then - interval).await.unwrap(), 2);
    assert_eq!(everything(&store, &sample::node(1)).await, [(boot, 3), (boot, 4)]);
    assert_eq!(send_at(&store, boot, &[1, 2], 1, then).await, answer(0, 2, 4, 0));
    assert_eq!(store.delete_heartbeats_before(then + interval).await.unwrap(), 2);
    assert_eq!(send_at(&store, boot, &[5], 5, then).await, answer(1, 0, 5, 0));

    // More than goes at once, and two replicas who want to do it: one does, or both a part.
    let sequences: Vec<u64> = (1..=12_000).collect();
    for sequences in sequences.chunks(250) {
        send_at(&store, sample::boot(2), sequences, 1, then).await;
    }
    let other = Store::connect(&url).await.unwrap();
    let later = then + interval;
    let (one, two) = tokio::join!(store.delete_heartbeats_before(later), other.delete_heartbeats_before(later));
    assert_eq!(one.unwrap() + two.unwrap(), 12_001);
    assert_eq!(store.node_states(None).await.unwrap().len(), 1);
    assert_eq!(store.delete_node_states_before(then - interval).await.unwrap(), 0);
    assert_eq!(store.delete_node_states_before(later).await.unwrap(), 1);
    assert_eq!(store.node_states(None).await.unwrap().len(), 0);
}

async fn a_node_joins_again_and_its_earlier_token_is_void(url: String) {
    let store = open(&url).await;
    let (first, second) = (TokenHash::of("first"), TokenHash::of("second"));
    let request = sample::join(&sample::node(1), sample::boot(1));
    let joined_at: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
    assert!(!store.join_node(&request, &first, joined_at).await.unwrap().rejoined);
    let node = store.node_by_token(&first).await.unwrap().unwrap();
    assert_eq!((node.node_id, node.joined_at, node.last_seen_at), (sample::node(1), joined_at, None));

    send(&store, sample::boot(1), &[1, 2], 1).await;
    let joined = store.join_node(&request, &second, Timestamp::now()).await.unwrap();
    assert!(joined.rejoined && joined.last_sequence == 2);
    assert_eq!(store.node_by_token(&first).await.unwrap(), None);
    let node = store.node_by_token(&second).await.unwrap().unwrap();
    assert!(node.joined_at == joined_at && node.last_seen_at.is_some(), "{node:?}");

    store.join_node(&sample::join(&sample::node(2), sample::boot(2)), &first, joined_at).await.unwrap();
    let ids: Vec<NodeId> = store.nodes().await.unwrap().into_iter().map(|node| node.node_id).collect();
    assert_eq!(ids, [sample::node(1), sample::node(2)]);
}

async fn of_several_who_set_a_setting_at_once_one_wins_and_all_learn_which(url: String) {
    let store = open(&url).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = store.clone();
        tasks.spawn(async move { store.put_setting_if_absent("key", &number.to_string()).await.unwrap() });
    }
    let told = tasks.join_all().await.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(told, BTreeSet::from([store.setting("key").await.unwrap().unwrap()]));
    store.put_setting("key", "other").await.unwrap();
    assert_eq!(store.setting("key").await.unwrap().as_deref(), Some("other"));
    assert_eq!(store.setting("nothing").await.unwrap(), None);
}

async fn several_sweepers_may_migrate_at_once(url: String) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = Store::connect(&url).await.unwrap();
        tasks.spawn(async move { store.migrate().await });
    }
    for migrated in tasks.join_all().await {
        migrated.unwrap();
    }
    assert_eq!(send(&open(&url).await, sample::boot(1), &[1], 1).await.stored, 1);
}

const LONG: Duration = Duration::from_secs(600);
/// Short, yet longer than the longest hiccup of a busy machine between two statements.
const SHORT: Duration = Duration::from_secs(2);

fn tick() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// Makes so many scopes known; with that of uncovered nodes there is one work unit more.
async fn with_scopes(url: &str, count: usize) -> Store {
    let store = open(url).await;
    let scope =
        |number| Scope { provider: Provider::Aws, account: "123456789012".into(), region: format!("region-{number}") };
    let scopes: BTreeSet<Scope> = (0..count).map(scope).collect();
    store.register_scopes(&scopes, LONG).await.unwrap();
    store.register_scopes(&scopes, LONG).await.unwrap();
    assert_eq!(store.work_units().await.unwrap().states.len(), count + 1, "known once each");
    store
}

/// Waits until the lease of a work unit is nobody's any more.
async fn until_free(store: &Store, unit: &WorkUnit) {
    lab::wait::until("the end of a lease", Duration::from_secs(30), || async {
        let states = store.work_units().await.unwrap().states;
        states.iter().find(|state| state.unit == *unit).filter(|state| state.held.is_none()).map(|_| ())
    })
    .await;
}

async fn of_several_replicas_each_scope_is_claimed_by_one(url: String) {
    const SCOPES: usize = 20;
    let stores = [with_scopes(&url, SCOPES).await, Store::connect(&url).await.unwrap()];
    let mut tasks = tokio::task::JoinSet::new();
    for replica in 0..12 {
        let store = stores[replica % 2].clone();
        tasks.spawn(async move {
            let mut leases = Vec::new();
            for state in store.work_units().await.unwrap().states {
                leases.extend(store.claim_due(&state.unit, tick(), &replica.to_string(), LONG).await.unwrap());
            }
            leases
        });
    }
    let leases: Vec<Lease> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(leases.len(), SCOPES + 1, "each once");
    assert!(leases.iter().all(|lease| lease.epoch == 1 && lease.taken_from.is_none()), "{leases:?}");
    let units: BTreeSet<&WorkUnit> = leases.iter().map(|lease| &lease.unit).collect();
    assert_eq!(units.len(), SCOPES + 1);
}

async fn a_lease_that_has_run_out_passes_to_another_and_is_not_renewed(url: String) {
    let store = with_scopes(&url, 0).await;
    let first = store.claim_due(&WorkUnit::Uncovered, tick(), "first", SHORT).await.unwrap().unwrap();
    assert_eq!(store.claim_due(&WorkUnit::Uncovered, tick(), "second", LONG).await.unwrap(), None);
    assert_eq!(store.claim(&first.unit, "second", LONG).await.unwrap(), None);
    let held = store.work_units().await.unwrap().states.remove(0).held.unwrap();
    assert_eq!(held.by, "first");

    until_free(&store, &first.unit).await;
    assert!(!store.renew(&first, LONG).await.unwrap(), "it has run out, whether or not somebody else has it");
    let second = store.claim_due(&WorkUnit::Uncovered, tick(), "second", LONG).await.unwrap().unwrap();
    assert_eq!((second.epoch, second.taken_from.as_deref()), (2, Some("first")));
    assert!(!store.renew(&first, LONG).await.unwrap() && store.renew(&second, LONG).await.unwrap());
    assert_eq!(store.release_leases("first").await.unwrap(), 0, "the second one keeps it");
    assert_eq!(store.claim(&first.unit, "first", LONG).await.unwrap(), None);
}

async fn a_lease_that_is_renewed_lasts_and_one_that_is_released_is_free_at_once(url: String) {
    let store = with_scopes(&url, 1).await;
    let units: Vec<WorkUnit> = store.work_units().await.unwrap().states.into_iter().map(|state| state.unit).collect();
    let lease = store.claim_due(&units[0], tick(), "first", SHORT).await.unwrap().unwrap();
    let other = store.claim_due(&units[1], tick(), "first", SHORT).await.unwrap().unwrap();
    assert!(store.renew(&lease, LONG).await.unwrap());
    until_free(&store, &other.unit).await;
    assert_eq!(store.claim(&lease.unit, "second", LONG).await.unwrap(), None);

    assert_eq!(store.release_leases("first").await.unwrap(), 2);
    let next = store.claim(&lease.unit, "second", LONG).await.unwrap().unwrap();
    assert_eq!((next.epoch, next.taken_from), (lease.epoch + 1, None), "dropped, not run out");
    assert!(!store.renew(&lease, LONG).await.unwrap());
}
