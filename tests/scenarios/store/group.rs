//! The heartbeats of many senders in one transaction, and the states of their nodes.

use super::{answer, everything, open};
use heartbeat::{BootId, NodeId, wire};
use jiff::Timestamp;
use lab::sample;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use sea_orm::ConnectionTrait as _;
use std::collections::BTreeSet;
use sweeper::{
    store::{Delivered, Delivery, TokenHash},
    verdict::{NodeSample, NodeState, Policy, StatePolicy},
};

lab::on_both_databases! {
    a_group_answers_each_sender_as_if_it_had_come_alone,
    of_a_group_that_fails_nothing_is_stored,
    a_node_has_the_state_of_its_heartbeats_in_order_whatever_order_they_came_in,
}

fn delivery(node: &NodeId, boot: BootId, sequences: &[u64], token: &str) -> Delivery {
    let envelope = sample::envelope(node, boot, sequences, Timestamp::now());
    let envelope = sample::checked(&wire::Envelope { oldest_retained_sequence: 1, ..envelope });
    Delivery::new(&envelope, Some(TokenHash::of(token))).unwrap()
}

fn state_policy() -> StatePolicy {
    StatePolicy::new(Policy::default())
}

async fn a_group_answers_each_sender_as_if_it_had_come_alone(url: String) {
    const NODES: u32 = 1_100;
    let store = open(&url).await;
    for number in 0..NODES {
        let request = sample::join(&sample::node(number), sample::boot(number));
        store.join_node(&request, &TokenHash::of(&format!("token {number}")), Timestamp::now()).await.unwrap();
    }
    let of = |number: u32, sequences: &[u64], token: u32| {
        delivery(&sample::node(number), sample::boot(number), sequences, &format!("token {token}"))
    };
    let mut group: Vec<_> = (0..NODES).map(|number| of(number, &[1, 2], number)).collect();
    // The same again, what follows it, and what lies behind a gap.
    group.extend([of(7, &[2, 1], 7), of(7, &[3], 7), of(7, &[5], 7)]);
    // Another's token, one that nobody has, and a node that never joined.
    group.extend([of(8, &[3], 9), of(8, &[4], NODES), of(NODES, &[1], NODES)]);
    let answers = store.commit(&group, &state_policy(), Timestamp::now()).await.unwrap();
    let stored = |stored, duplicates, contiguous| Delivered::Stored(answer(stored, duplicates, contiguous, 0));
    let mut expected: Vec<_> = (0..NODES).map(|number| stored(2, 0, if number == 7 { 3 } else { 2 })).collect();
    expected.extend([stored(0, 2, 3), stored(1, 0, 3), stored(1, 0, 3)]);
    expected.extend([Delivered::TokenVoid; 3]);
    assert_eq!(answers, expected);
    for (number, sequences) in [(0, vec![1, 2]), (7, vec![1, 2, 3, 5]), (8, vec![1, 2]), (NODES, vec![])] {
        let found: BTreeSet<_> =
            everything(&store, &sample::node(number)).await.into_iter().map(|(_, sequence)| sequence).collect();
        assert_eq!(found, sequences.into_iter().collect(), "node {number}");
    }
    let seen = store.nodes().await.unwrap().into_iter().filter(|node| node.last_seen_at.is_some()).count();
    assert_eq!(seen, usize::try_from(NODES).unwrap());

    // Only the boot with a gap has anything to look for.
    let group: Vec<_> = (5..10).map(|number| of(number, if number == 7 { &[4] } else { &[3] }, number)).collect();
    let answers = store.commit(&group, &state_policy(), Timestamp::now()).await.unwrap();
    assert_eq!(answers, [stored(1, 0, 3), stored(1, 0, 3), stored(1, 0, 5), stored(1, 0, 3), stored(1, 0, 3)]);
    assert_eq!(store.commit(&[], &state_policy(), Timestamp::now()).await.unwrap(), []);
}

async fn of_a_group_that_fails_nothing_is_stored(url: String) {
    let store = open(&url).await;
    let node = sample::node(1);
    store.join_node(&sample::join(&node, sample::boot(1)), &TokenHash::of("token"), Timestamp::now()).await.unwrap();
    store.connection().execute_unprepared("ALTER TABLE boots RENAME TO elsewhere").await.unwrap();
    let group = [delivery(&node, sample::boot(1), &[1], "token"), delivery(&node, sample::boot(2), &[1], "token")];
    store.commit(&group, &state_policy(), Timestamp::now()).await.unwrap_err();
    assert_eq!(everything(&store, &node).await, []);
    store.connection().execute_unprepared("ALTER TABLE elsewhere RENAME TO boots").await.unwrap();
    assert_eq!(
        store.commit(&group, &state_policy(), Timestamp::now()).await.unwrap(),
        [Delivered::Stored(answer(1, 0, 1, 0)); 2]
    );
}

async fn a_node_has_the_state_of_its_heartbeats_in_order_whatever_order_they_came_in(url: String) {
    let store = open(&url).await;
    let mut random = StdRng::seed_from_u64(0x005e_edad);
    let now = Timestamp::now();
    for round in 0..40 {
        let (node, boot) = (sample::node(round), sample::boot(round));
        // Three hours, which is longer than a state looks back, with work now and then.
        let mut beats = sample::envelope(&node, boot, &(1..=240).collect::<Vec<_>>(), now).heartbeats;
        let mut worked = 0;
        for beat in &mut beats {
            worked += if random.random_bool(0.02) { 5_000_000_000 } else { 0 };
            beat.workloads[0].cpu_ns = Some(worked);
        }
        beats.retain(|_| random.random_bool(0.95));
        let samples = beats.iter().map(|beat| NodeSample::of(boot, beat).unwrap());
        let expected = NodeState::of(samples, &state_policy());

        let mut arriving: Vec<_> = beats.iter().collect();
        match round % 4 {
            0 => arriving.shuffle(&mut random),
            1 => arriving.reverse(),
            // In two heaps, the later one first.
            2 => arriving.rotate_left(beats.len() / 2),
            _ => {}
        }
        for group in arriving.chunks(random.random_range(1..60)) {
            let heartbeats = group.iter().map(|beat| (*beat).clone()).collect();
            let envelope = sample::envelope(&node, boot, &[], now);
            let envelope = wire::Envelope { heartbeats, oldest_retained_sequence: 1, ..envelope };
            let delivery = Delivery::new(&sample::checked(&envelope), None).unwrap();
            // The same twice, in one group and in the next.
            let twice = [delivery.clone(), delivery.clone()];
            store.commit(&twice, &state_policy(), now).await.unwrap();
            store.commit(&twice[..1], &state_policy(), now).await.unwrap();
        }
        let states = store.node_states(Some(&node.to_string())).await.unwrap();
        assert_eq!(states.get(&node), expected.as_ref(), "round {round}");
    }
    assert_eq!(store.node_states(None).await.unwrap().len(), 40);
}
