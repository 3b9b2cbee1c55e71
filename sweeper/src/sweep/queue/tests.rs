//! A queue that waits for nobody, and ends once all is swept.

use super::*;
use crate::{
    config::{Config, Enabled},
    inventory::Scope,
    store::{Finished, Store, scopes},
    work_unit::WorkUnit,
};
use model::Provider;
use sea_orm::ConnectionTrait as _;
use std::collections::BTreeSet;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
}

fn units(states: &[(Option<i64>, Option<i64>)]) -> WorkUnits {
    let state = |(swept_for, until): &(Option<i64>, Option<i64>)| WorkUnitState {
        unit: WorkUnit::Uncovered,
        held: until.map(|until| Held { by: "web-1/7/00".into(), until: at(until) }),
        epoch: 1,
        swept_for: swept_for.map(at),
        started_at: None,
        finished_at: None,
        complete: None,
        last_complete_at: None,
        listed: None,
        failed: None,
    };
    WorkUnits { now: at(0), states: states.iter().map(state).collect() }
}

#[test]
fn a_replica_looks_again_when_the_first_lease_on_something_due_ends() {
    let wait = |states: &[_]| free_in(&units(states), &Ticks::all(at(10)));
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[(Some(10), None), (Some(11), Some(5))]), None, "swept for this tick or a later one");
    assert_eq!(wait(&[(Some(9), Some(30)), (None, Some(20)), (Some(10), Some(1))]), Some(Duration::from_secs(20)));
    assert_eq!(wait(&[(Some(9), Some(30)), (None, None)]), Some(Duration::ZERO));
}

fn scope(region: &str) -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".to_owned(), region: region.to_owned() }
}

/// Two scopes and the nodes that none covers, and nobody to ask.
async fn context() -> Context {
    context_of(&["eu-central-1", "us-east-1"]).await
}

async fn context_of(regions: &[&str]) -> Context {
    let store = Store::connect("sqlite::memory:").await.expect("a database");
    store.migrate().await.expect("a schema");
    let mut config = Config::default();
    config.aws.enabled = Enabled::No;
    let scopes = regions.iter().map(|region| scope(region)).collect::<BTreeSet<_>>();
    store.register_scopes(&scopes, config.sweep.lease).await.expect("scopes");
    Context { store, config, channels: Vec::new(), price_lists: crate::sweep::PriceLists::default() }
}

/// Writes the result of a sweep.
async fn finish(context: &Context, taken: Taken) -> String {
    let transaction = context.store.begin_leased(context.config.sweep.lease).await.expect("a transaction");
    let finished = Finished { swept_for: taken.tick, complete: true, listed: None, failed: None };
    assert!(scopes::finish(&transaction, &taken.lease, &finished).await.expect("an answer"));
    transaction.commit().await.expect("a commit");
    taken.lease.unit.to_string()
}

const SOON: Duration = Duration::from_millis(300);
const LATEST: Duration = Duration::from_secs(30);

#[tokio::test]
async fn what_a_new_tick_makes_due_does_not_wait_for_the_slowest_of_the_one_before() {
    let context = context().await;
    let (sender, ticks) = watch::channel(Ticks::all(at(10)));
    let mut discovered_for = None;
    let mut queue = Queue::new(&context, "one", ticks, &mut discovered_for);
    let slow = queue.next().await.expect("the first");
    assert_eq!(slow.lease.unit, WorkUnit::Scope(scope("eu-central-1")));
    for tick in [10, 20, 30] {
        sender.send_replace(Ticks::all(at(tick)));
        for unit in ["aws 123456789012 us-east-1", "nodes that no scope covers"] {
            let taken = tokio::time::timeout(LATEST, queue.next()).await.expect("soon").expect("one");
            assert_eq!(taken.tick, at(tick));
            assert_eq!(finish(&context, taken).await, unit);
        }
        // It waits then, since the round is not over.
        assert!(tokio::time::timeout(SOON, queue.next()).await.is_err(), "{tick}");
    }
    finish(&context, slow).await;
    // The slow one was swept for an old tick.
    let again = tokio::time::timeout(LATEST, queue.next()).await.expect("soon").expect("one");
    assert_eq!((again.lease.unit.clone(), again.tick), (WorkUnit::Scope(scope("eu-central-1")), at(30)));
    finish(&context, again).await;
    let ended = tokio::time::timeout(LATEST, queue.next()).await.expect("soon");
    assert!(ended.is_none() && queue.wait().is_none(), "nothing is left before the next tick");
}

#[tokio::test]
async fn a_round_ends_when_its_last_sweep_does_and_says_when_the_lease_of_a_failed_one_is_over() {
    let context = context().await;
    let (_sender, ticks) = watch::channel(Ticks::all(at(10)));
    let mut discovered_for = None;
    let mut queue = Queue::new(&context, "one", ticks, &mut discovered_for);
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(queue.next().await.expect("one of three"));
    }
    // It fails and writes nothing; the other two are swept.
    drop(taken.remove(0));
    let end = async {
        tokio::time::sleep(SOON).await;
        for taken in taken {
            finish(&context, taken).await;
        }
    };
    let (ended, ()) = tokio::time::timeout(LATEST, async { tokio::join!(queue.next(), end) }).await.expect("an end");
    assert!(ended.is_none());
    let wait = queue.wait().expect("it is tried again");
    assert!(wait > PAUSE && wait <= context.config.sweep.lease, "{wait:?}");
}

#[tokio::test]
async fn two_replicas_go_by_one_queue() {
    let context = context().await;
    let (_sender, ticks) = watch::channel(Ticks::all(at(10)));
    let (mut for_one, mut for_two) = (None, None);
    let mut one = Queue::new(&context, "one", ticks.clone(), &mut for_one);
    let mut two = Queue::new(&context, "two", ticks, &mut for_two);
    let taken = [one.next().await, two.next().await, one.next().await];
    let units = taken.iter().flatten().map(|taken| taken.lease.unit.to_string()).collect::<Vec<_>>();
    let expected = ["aws 123456789012 eu-central-1", "aws 123456789012 us-east-1", "nodes that no scope covers"];
    assert_eq!(units, expected);
}

#[tokio::test]
async fn what_is_beyond_a_replicas_share_is_left_to_others_for_a_moment() {
    let context = context_of(&["a-1", "b-1", "c-1", "d-1", "e-1"]).await;
    let (_sender, ticks) = watch::channel(Ticks::all(at(10)));
    let mut discovered_for = None;
    let mut one = Queue::new(&context, "one", ticks, &mut discovered_for);
    assert_eq!(context.store.note_replica("two").await.expect("an answer"), 1);
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(tokio::time::timeout(LATEST, one.next()).await.expect("soon").expect("its share of six"));
    }
    assert!(tokio::time::timeout(SOON, one.next()).await.is_err(), "three of six are in hand, and two replicas serve");
    // Five are due then.
    finish(&context, taken.remove(0)).await;
    taken.push(tokio::time::timeout(LATEST, one.next()).await.expect("soon").expect("a third one of five"));
    assert!(tokio::time::timeout(SOON, one.next()).await.is_err());
    // Not for ever: it was killed, perhaps, and the ones in hand may be slow.
    let began = Instant::now();
    taken.push(tokio::time::timeout(LATEST, one.next()).await.expect("soon").expect("what nobody else takes"));
    assert!(began.elapsed() > COURTESY - SOON * 2, "the other one had time to take it");
    context.store.forget_replica("two").await.expect("an answer");
    taken.push(tokio::time::timeout(LATEST, one.next()).await.expect("soon").expect("nobody else serves"));
    for taken in taken {
        finish(&context, taken).await;
    }
    assert!(tokio::time::timeout(LATEST, one.next()).await.expect("soon").is_none(), "all six are swept");
}

#[tokio::test]
async fn a_replica_that_said_nothing_for_long_is_not_counted() {
    let context = context().await;
    let store = &context.store;
    assert_eq!(store.note_replica("one").await.expect("an answer"), 1);
    assert_eq!(store.note_replica("two").await.expect("an answer"), 2);
    assert_eq!(store.note_replica("two").await.expect("an answer"), 2, "it is the same");
    let silent_ms = crate::store::LIVE_FOR.as_millis() + 1_000;
    let silent = format!("UPDATE replicas SET seen_unix_ms = seen_unix_ms - {silent_ms} WHERE owner = 'one'");
    store.connection().execute_unprepared(&silent).await.expect("a moment passes");
    assert_eq!(store.note_replica("two").await.expect("an answer"), 1);
    assert_eq!(store.note_replica("one").await.expect("an answer"), 2, "it is heard again");
}
