use super::*;
use crate::inventory::{Failure, FailureKind, Instance, InstanceState, Listing, sample};
use model::{Provider, ResourceKey, ResourceKind};

const KEY: &str = "aws:123456789012:eu-central-1:i-0123456789abcdef0";

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + minute * 60).expect("a time")
}

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() }
}

fn listed(instances: Vec<Instance>) -> Inventory {
    let outcome = Outcome::Complete { listed: instances.len() };
    let listings = vec![Listing::of(&scope(), ResourceKind::Instance, outcome)];
    Inventory { instances, listings, ..Inventory::default() }
}

fn denied() -> Inventory {
    let why = Failure { kind: FailureKind::Denied, message: "not you".into() };
    let outcome = Outcome::Failed { what: "ec2:DescribeInstances".into(), why };
    Inventory::failed(Listing::of(&scope(), ResourceKind::Instance, outcome))
}

fn stopped() -> Instance {
    Instance { state: InstanceState::Stopped, ..sample::instance() }
}

async fn after(sweeps: &[(i64, Inventory)]) -> Store {
    let store = Store::connect("sqlite::memory:").await.expect("a database");
    store.migrate().await.expect("a schema");
    for (minute, inventory) in sweeps {
        let transaction = store.begin_write().await.expect("a transaction");
        record(&transaction, Some(&scope()), inventory, at(*minute)).await.expect("written");
        transaction.commit().await.expect("committed");
    }
    store
}

/// State, from and until (in minutes) of every version.
async fn versions(store: &Store) -> Vec<(String, Timestamp, Option<Timestamp>)> {
    let versions = store.resource_history(KEY).await.expect("read");
    let state = |version: &Version| version.record["state"].as_str().expect("a state").to_owned();
    versions.iter().map(|version| (state(version), version.from, version.until)).collect()
}

#[tokio::test]
async fn a_version_lasts_until_a_complete_listing_shows_another() {
    let store = after(&[
        (0, listed(vec![sample::instance()])),
        (10, listed(vec![sample::instance()])),
        (20, listed(vec![stopped()])),
        (30, listed(vec![])),
        (40, listed(vec![sample::instance()])),
    ])
    .await;
    assert_eq!(
        versions(&store).await,
        [
            ("running".into(), at(0), Some(at(20))),
            ("stopped".into(), at(20), Some(at(30))),
            ("running".into(), at(40), None)
        ]
    );
    for (minute, expected) in
        [(-1, None), (0, Some("running")), (20, Some("stopped")), (35, None), (99, Some("running"))]
    {
        let then = store.resources_at(at(minute), Some(ResourceKind::Instance.into())).await.expect("read");
        assert_eq!(then.first().and_then(|version| version.record["state"].as_str()), expected, "{minute}");
    }
    assert_eq!(
        store.resource_history("i-0123456789abcdef0").await.expect("read").len(),
        3,
        "the end of a key is enough"
    );
}

#[tokio::test]
async fn a_failed_listing_ends_nothing_and_says_since_when_nobody_looks() {
    let store = after(&[(0, listed(vec![sample::instance()])), (10, denied()), (20, denied())]).await;
    assert_eq!(versions(&store).await, [("running".into(), at(0), None)]);
    let spans = store.listings_at(at(60)).await.expect("read");
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((span.from, span.until, span.kind.as_str()), (at(10), at(20), "instance"));
    assert_eq!(span.failed.as_deref(), Some("ec2:DescribeInstances: denied: not you"));
    assert_eq!(store.listings_at(at(5)).await.expect("read")[0].failed, None, "it could be listed then");
}

#[tokio::test]
async fn what_failed_before_anything_was_listed_is_said_of_every_kind() {
    let why = Failure { kind: FailureKind::Credentials, message: "expired".into() };
    let outcome = Outcome::Failed { what: "sts:GetCallerIdentity".into(), why };
    let nothing = Listing { provider: Provider::Aws, account: None, region: None, kind: None, outcome };
    let store = after(&[(0, listed(vec![sample::instance()])), (10, Inventory::failed(nothing))]).await;
    assert_eq!(versions(&store).await, [("running".into(), at(0), None)]);
    let spans = store.listings_at(at(60)).await.expect("read");
    let kinds = Kind::ALL.iter().filter(|kind| kind.resource().is_some() && kind.is_read_of(Provider::Aws)).count();
    assert_eq!(spans.iter().filter(|span| span.failed.is_some()).count(), kinds, "{spans:?}");
}

#[tokio::test]
async fn a_zone_that_could_not_be_listed_ends_nothing_until_it_is_listed_again() {
    let scope = Scope { provider: Provider::Gcp, account: "omics".into(), region: Scope::EVERYWHERE.into() };
    let project = |places: &[&str], silent: Option<&str>| {
        let instance = |place: &&str| Instance {
            id: format!("gcp:omics:{place}:1").parse().expect("a node id"),
            ..sample::instance()
        };
        let instances: Vec<Instance> = places.iter().map(instance).collect();
        let outcome = Outcome::Complete { listed: instances.len() };
        let mut listings = vec![Listing::of(&scope, ResourceKind::Instance, outcome)];
        if let Some(place) = silent {
            let why = Failure { kind: FailureKind::Unreachable, message: "did not answer".into() };
            let outcome = Outcome::Failed { what: "list".into(), why };
            listings
                .push(Listing { region: Some(place.into()), ..Listing::of(&scope, ResourceKind::Instance, outcome) });
        }
        Inventory { instances, listings, ..Inventory::default() }
    };
    let store = Store::connect("sqlite::memory:").await.expect("a database");
    store.migrate().await.expect("a schema");
    for (minute, inventory) in
        [(0, project(&["a", "b"], None)), (10, project(&[], Some("b"))), (20, project(&[], None))]
    {
        let transaction = store.begin_write().await.expect("a transaction");
        record(&transaction, Some(&scope), &inventory, at(minute)).await.expect("written");
        transaction.commit().await.expect("committed");
    }
    let there = async |minute| {
        let versions = store.resources_at(at(minute), None).await.expect("read");
        versions.into_iter().map(|version| version.resource).collect::<Vec<_>>()
    };
    let not_known = async |minute| {
        let spans = store.listings_at(at(minute)).await.expect("read");
        spans.into_iter().filter(|span| span.failed.is_some()).map(|span| span.region).collect::<Vec<_>>()
    };
    assert_eq!((there(5).await, not_known(5).await), (vec!["gcp:omics:a:1".into(), "gcp:omics:b:1".into()], vec![]));
    assert_eq!((there(15).await, not_known(15).await), (vec!["gcp:omics:b:1".into()], vec!["b".into()]));
    assert_eq!((there(25).await, not_known(25).await), (Vec::<String>::new(), Vec::<String>::new()));
}

#[tokio::test]
async fn what_is_over_is_deleted_in_time_and_what_lasts_is_not() {
    let store = after(&[(0, listed(vec![sample::instance()])), (20, listed(vec![stopped()]))]).await;
    assert_eq!(store.delete_history_before(at(20)).await.expect("deleted"), 0);
    assert_eq!(store.delete_history_before(at(60)).await.expect("deleted"), 2, "a version and the span of its listing");
    assert_eq!(versions(&store).await, [("stopped".into(), at(20), None)]);
}

#[tokio::test]
async fn more_rows_than_one_statement_takes_are_written_and_ended() {
    let many = |state: InstanceState| {
        let instance = |number: usize| Instance {
            id: format!("aws:123456789012:eu-central-1:i-{number:017x}").parse().expect("a node id"),
            state: state.clone(),
            ..sample::instance()
        };
        listed((0..2 * ROWS + 1).map(instance).collect())
    };
    let store = after(&[(0, many(InstanceState::Running)), (10, many(InstanceState::Stopped))]).await;
    for (minute, word) in [(5, "running"), (15, "stopped")] {
        let then = store.resources_at(at(minute), None).await.expect("read");
        assert_eq!(then.len(), 2 * ROWS + 1);
        assert!(then.iter().all(|version| version.record["state"] == word));
    }
}

#[tokio::test]
async fn what_has_been_so_is_told_across_versions_and_since_the_last_interruption() {
    let tagged = || Instance { tags: [("team".to_owned(), "x".to_owned())].into(), ..stopped() };
    let key: ResourceKey = KEY.parse().expect("a key");
    let since = async |sweeps: &[(i64, Inventory)]| {
        let store = after(sweeps).await;
        let is_stopped = |record: &str| record.contains(r#""state":"stopped""#);
        let kind = Kind::from(ResourceKind::Instance);
        let asked = [key.clone(), "aws:123456789012:eu-central-1:i-1".parse().expect("a key")];
        let lasting = store.lasting_since(kind, &asked, is_stopped).await.expect("an answer");
        assert!(lasting.len() <= 1, "of what was never listed nothing is known");
        lasting.get(&key).copied()
    };
    let of = |instance: Instance| listed(vec![instance]);
    assert_eq!(since(&[(0, of(sample::instance()))]).await, None);
    assert_eq!(since(&[(0, of(sample::instance())), (10, of(stopped())), (20, of(tagged()))]).await, Some(at(10)));
    assert_eq!(since(&[(0, of(stopped())), (10, denied()), (20, of(tagged()))]).await, Some(at(0)), "nobody looked");
    let interrupted = [(0, of(stopped())), (10, of(sample::instance())), (20, of(stopped())), (30, of(tagged()))];
    assert_eq!(since(&interrupted).await, Some(at(20)));
    assert_eq!(
        since(&[(0, of(stopped())), (10, listed(vec![])), (20, of(stopped()))]).await,
        Some(at(20)),
        "it was away"
    );
    assert_eq!(since(&[(0, of(stopped())), (10, listed(vec![]))]).await, None, "it is gone");
    assert_eq!(since(&[(0, of(stopped())), (10, of(sample::instance()))]).await, None);
}

#[tokio::test]
async fn a_time_without_sweeps_is_one_in_which_nobody_looked() {
    let running = || listed(vec![sample::instance()]);
    // From Friday evening to Monday morning; three hours are the longest that counts as without a gap.
    let store = after(&[(0, running()), (180, running()), (180 + 61 * 60, running())]).await;
    assert_eq!(versions(&store).await, [("running".into(), at(0), None)]);
    let gaps = store.machines_not_listed().await.expect("read").into_values().collect::<Vec<_>>();
    let ms = |minute| to_unix_ms(at(minute));
    assert_eq!(gaps, [vec![(ms(180), ms(180 + 61 * 60)), (ms(180 + 61 * 60), i64::MAX)]]);
    let spans = store.listings_at(at(9_000)).await.expect("read");
    assert_eq!((spans.len(), spans[0].until), (1, at(180 + 61 * 60)), "the latest one");
}
