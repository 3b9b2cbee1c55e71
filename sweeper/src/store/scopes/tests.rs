//! A result is written under the claim that it was read under, or not at all.

use super::*;

const LONG: Duration = Duration::from_secs(600);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
}

fn swept(tick: i64, complete: bool) -> Finished {
    let failed = (!complete).then(|| "ec2:DescribeInstances: throttled".to_owned());
    Finished { swept_for: at(tick), complete, listed: Some("3 × instance".to_owned()), failed }
}

async fn store() -> Store {
    let store = Store::connect("sqlite::memory:").await.expect("a database");
    store.migrate().await.expect("a schema");
    store.register_scopes(&BTreeSet::new(), LONG).await.expect("the work unit of uncovered nodes");
    store
}

async fn claim(store: &Store, tick: i64, owner: &str) -> Option<Lease> {
    store.claim_due(&WorkUnit::Uncovered, at(tick), owner, LONG).await.expect("an answer")
}

/// Writes a result as a sweep does. False if it was refused.
async fn write(store: &Store, lease: &Lease, finished: &Finished) -> bool {
    let transaction = store.begin_leased(LONG).await.expect("a transaction");
    let written = finish(&transaction, lease, finished).await.expect("an answer");
    if written {
        transaction.commit().await.expect("a commit");
    } else {
        transaction.rollback().await.expect("a rollback");
    }
    written
}

async fn only_state(store: &Store) -> WorkUnitState {
    store.work_units().await.expect("an answer").states.remove(0)
}

#[tokio::test]
async fn a_work_unit_is_due_once_for_each_tick() {
    let store = store().await;
    let lease = claim(&store, 10, "one").await.expect("a lease");
    assert!(write(&store, &lease, &swept(10, true)).await);
    let state = only_state(&store).await;
    assert_eq!((state.swept_for, state.held, state.complete), (Some(at(10)), None, Some(true)));
    assert!(state.finished_at.is_some() && state.last_complete_at == state.finished_at);
    assert_eq!(claim(&store, 10, "two").await, None);
    assert_eq!(claim(&store, 9, "two").await, None, "nor for one that a late scheduler still speaks of");
    assert!(claim(&store, 11, "two").await.is_some());
}

#[tokio::test]
async fn a_result_that_was_read_under_an_earlier_claim_is_refused() {
    let store = store().await;
    let paused = claim(&store, 10, "paused").await.expect("a lease");
    store.release_leases("paused").await.expect("an answer");
    assert!(
        !write(&store, &paused, &swept(10, true)).await,
        "its lease is over, though nobody has claimed the work unit"
    );
    let next = claim(&store, 10, "next").await.expect("a lease");
    assert!(!write(&store, &paused, &swept(10, true)).await);
    assert_eq!(only_state(&store).await.swept_for, None);
    assert!(write(&store, &next, &swept(10, true)).await);
    assert!(!write(&store, &next, &swept(11, true)).await, "nor twice under one claim");
}

#[tokio::test]
async fn a_sweep_on_request_never_makes_a_later_tick_due_again() {
    let store = store().await;
    let lease = claim(&store, 20, "one").await.expect("a lease");
    assert!(write(&store, &lease, &swept(20, true)).await);
    let lease = store.claim(&WorkUnit::Uncovered, "by hand", LONG).await.expect("an answer").expect("a lease");
    assert!(write(&store, &lease, &swept(15, false)).await);
    let state = only_state(&store).await;
    assert_eq!((state.swept_for, state.complete), (Some(at(20)), Some(false)));
    assert!(state.last_complete_at.is_some() && state.failed.is_some(), "when it was last complete is remembered");
}

#[tokio::test]
async fn a_work_unit_of_a_later_version_is_left_to_it() {
    let store = store().await;
    let row = row::ActiveModel {
        provider: Set("azure".to_owned()),
        account: Set("1".to_owned()),
        region: Set("westeurope".to_owned()),
        lease_epoch: Set(0),
        lease_until_unix_ms: Set(0),
        ..row::ActiveModel::default()
    };
    row::Entity::insert(row).exec_without_returning(store.connection()).await.expect("a row");
    let states = store.work_units().await.expect("an answer").states;
    assert_eq!(states.into_iter().map(|state| state.unit).collect::<Vec<_>>(), [WorkUnit::Uncovered]);
}

fn scope(region: &str) -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".to_owned(), region: region.to_owned() }
}

/// Three scopes and the nodes that none covers.
async fn four() -> Store {
    let store = store().await;
    store.register_scopes(&["a", "b", "c"].map(scope).into(), LONG).await.expect("scopes");
    store
}

/// As if its last sweep had begun then.
async fn begun(store: &Store, region: &str, second: Option<i64>) {
    row::Entity::update_many()
        .col_expr(row::Column::StartedUnixMs, Expr::value(second.map(|second| at(second).as_millisecond())))
        .filter(is(&WorkUnit::Scope(scope(region))))
        .exec(store.connection())
        .await
        .expect("an answer");
}

async fn next(store: &Store, tick: i64, owner: &str) -> Option<Lease> {
    store.claim_longest_unswept(|_| at(tick), owner, LONG).await.expect("an answer")
}

/// The region, or `""` of the nodes that no scope covers.
fn region(lease: Option<&Lease>) -> Option<&str> {
    lease.map(|lease| lease.unit.words().2)
}

#[tokio::test]
async fn the_longest_unswept_is_claimed_first_and_one_that_never_was_before_all() {
    let store = four().await;
    for (region, second) in [("a", Some(-10)), ("b", Some(-30)), ("c", None)] {
        begun(&store, region, second).await;
    }
    let mut claimed = Vec::new();
    for _ in 0..5 {
        claimed.push(next(&store, 10, "one").await);
    }
    let order: Vec<_> = claimed.iter().map(|lease| region(lease.as_ref())).collect();
    assert_eq!(order, [Some("c"), Some(""), Some("b"), Some("a"), None], "of two that never were, by their names");
    assert!(claimed.iter().flatten().all(|lease| lease.epoch == 1));
}

#[tokio::test]
async fn what_is_not_due_is_passed_over_each_by_its_own_tick() {
    let store = four().await;
    for _ in 0..4 {
        let lease = next(&store, 10, "one").await.expect("a lease");
        assert!(write(&store, &lease, &swept(10, true)).await);
    }
    let tick = |unit: &WorkUnit| if unit.words().2 == "b" { at(11) } else { at(10) };
    let lease = store.claim_longest_unswept(tick, "one", LONG).await.expect("an answer");
    assert_eq!(region(lease.as_ref()), Some("b"));
    assert_eq!(store.claim_longest_unswept(tick, "one", LONG).await.expect("an answer"), None);
}

#[tokio::test]
async fn one_that_fails_each_time_comes_again_only_after_all_that_wait() {
    let store = four().await;
    let mut order = Vec::new();
    for tick in 10..18 {
        let lease = next(&store, tick, "one").await.expect("a lease");
        if lease.unit == WorkUnit::Scope(scope("a")) {
            // Its sweep wrote nothing, and its lease has run out.
            store.release_leases("one").await.expect("an answer");
        } else {
            assert!(write(&store, &lease, &swept(tick, true)).await);
        }
        order.push(region(Some(&lease)).unwrap_or_default().to_owned());
        // The database's clock counts milliseconds.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    assert_eq!(order, ["a", "b", "c", "", "a", "b", "c", ""], "though every tick makes all of them due");
}

#[tokio::test]
async fn two_claimants_share_one_queue() {
    let store = four().await;
    for (region, second) in [("a", -10), ("b", -30), ("c", -20)] {
        begun(&store, region, Some(second)).await;
    }
    let mut claimed = Vec::new();
    for owner in ["one", "two", "two", "one", "two"] {
        claimed.push(next(&store, 10, owner).await);
    }
    let order: Vec<_> = claimed.iter().map(|lease| region(lease.as_ref())).collect();
    assert_eq!(order, [Some(""), Some("b"), Some("c"), Some("a"), None], "each once, whoever asks");
    store.release_leases("one").await.expect("an answer");
    let (left, right) = futures::join!(next(&store, 10, "two"), next(&store, 10, "three"));
    let mut taken_over = [region(left.as_ref()), region(right.as_ref())];
    taken_over.sort_unstable();
    assert_eq!(taken_over, [Some(""), Some("a")], "what one leaves is taken over, by one each");
}
