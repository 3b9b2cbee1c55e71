//! What is kept of what zones offer.

use super::open;
use jiff::{SignedDuration, Timestamp};
use model::Provider;
use sweeper::inventory::{Offered, Scope};

lab::on_both_databases! {
    of_each_scope_the_last_catalogue_is_kept_until_it_is_too_old,
}

async fn of_each_scope_the_last_catalogue_is_kept_until_it_is_too_old(url: String) {
    let store = open(&url).await;
    let scope = |region: &str| Scope { provider: Provider::Aws, account: "123456789012".into(), region: region.into() };
    let at = |second| Timestamp::constant(1_790_000_000, 0) + SignedDuration::from_secs(second);
    let offers =
        |name: &str| Offered { zones: [("zone".to_owned(), [name.to_owned()].into())].into(), ..Offered::default() };
    for (region, name, second) in [("a", "m5.large", 1), ("b", "m5.xlarge", 2), ("a", "c5.large", 3)] {
        store.put_catalogue(&scope(region), &offers(name), at(second)).await.unwrap();
    }
    assert_eq!(store.catalogue(&scope("a")).await.unwrap(), Some((at(3), offers("c5.large"))));
    assert_eq!(store.catalogue(&scope("b")).await.unwrap(), Some((at(2), offers("m5.xlarge"))));
    assert_eq!(store.catalogue(&scope("c")).await.unwrap(), None);

    assert_eq!(store.delete_catalogues_before(at(3)).await.unwrap(), 1, "not what was read at that moment");
    assert_eq!(store.catalogue_read_at(&scope("b")).await.unwrap(), None);
    assert_eq!(store.catalogue_read_at(&scope("a")).await.unwrap(), Some(at(3)));
}
