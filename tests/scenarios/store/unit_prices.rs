//! Prices per unit are kept by date.

use super::open;
use jiff::{SignedDuration, Timestamp};
use model::{Provider, UnitPrice};
use std::collections::{BTreeMap, BTreeSet};
use sweeper::{
    pricing::{UnitKey, Usage},
    store::KnownPrice,
};

lab::on_both_databases! {
    a_price_per_unit_is_kept_since_when_it_is_so_and_each_list_by_itself,
}

async fn a_price_per_unit_is_kept_since_when_it_is_so_and_each_list_by_itself(url: String) {
    let store = open(&url).await;
    let at = |second| Timestamp::constant(1_790_000_000, 0) + SignedDuration::from_secs(second);
    let key = |region: &str, usage| UnitKey { provider: Provider::Aws, region: region.into(), usage };
    let price = |text: &str| text.parse::<UnitPrice>().unwrap();
    let known = |text: &str, from, read| KnownPrice { price: price(text), effective_from: at(from), read_at: at(read) };
    let (gp3, other) = (key("us-east-1", Usage::Gp3), key("us-west-2", Usage::Gp3));
    let idle = key("us-east-1", Usage::AddressIdle);
    let keys: BTreeSet<UnitKey> = [gp3.clone(), other.clone(), idle.clone()].into();

    let first = BTreeMap::from([(gp3.clone(), price("0.0000000001")), (idle.clone(), price("0.005"))]);
    store.put_unit_prices("api", &first, at(1)).await.unwrap();
    store.put_unit_prices("api", &BTreeMap::from([(idle.clone(), price("0.005"))]), at(2)).await.unwrap();
    store.put_unit_prices("api", &BTreeMap::from([(gp3.clone(), price("0.09"))]), at(3)).await.unwrap();
    store.put_unit_prices("file", &BTreeMap::from([(gp3.clone(), price("1"))]), at(9)).await.unwrap();
    let read = store.unit_prices("api", &keys).await.unwrap();
    assert_eq!((read.get(&gp3), read.get(&idle)), (Some(&known("0.09", 3, 3)), Some(&known("0.005", 1, 2))));
    assert_eq!(read.get(&other), None);
    assert_eq!(store.unit_prices("file", &keys).await.unwrap().len(), 1);
    let only = store.unit_prices("api", &[idle.clone()].into()).await.unwrap();
    assert_eq!(only.keys().collect::<Vec<_>>(), [&idle], "what was asked for");
}
