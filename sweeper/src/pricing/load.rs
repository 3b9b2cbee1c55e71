//! Fills price tables for the keys that are needed, from the API or from a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use futures::{StreamExt, stream};

use super::{
    OfferFile, PriceKey, PriceList, PriceTable, ReadPrice, UnitKey, UnitTable, Unpriced,
    aws::{
        self,
        list::{Rows, Wanted},
    },
    file, unavailable,
};
use crate::inventory::aws::Session;

/// The API allows few calls a second; more at once are only throttled.
const KEYS_AT_ONCE: usize = 4;

/// Where prices come from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source.
    pub source: Source,
}

/// Where prices come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The price list API.
    Api {
        /// The credentials in use.
        session: Session,
        /// Where the API is asked; it answers in few regions, and for all of them.
        region: String,
    },
    /// A price list on disk.
    File {
        /// Where it lies.
        path: PathBuf,
        /// What was read of it before.
        read: OfferFile,
    },
    /// Nowhere: every price is unknown.
    Off,
}

impl Source {
    /// This price list on disk, of which nothing was read before.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), read: OfferFile::default() }
    }
}

/// Looks up the prices for these keys, of machines and per unit. What fails is in the tables, as the reason why a price is not known.
pub async fn load(
    options: &Options,
    machines: &BTreeSet<PriceKey>,
    units: &BTreeSet<UnitKey>,
) -> (PriceTable, UnitTable) {
    if machines.is_empty() && units.is_empty() {
        return (PriceTable::default(), UnitTable::default());
    }
    match &options.source {
        Source::Off => unavailable(Unpriced::Off),
        Source::Api { session, region } => {
            let client = session.pricing(region);
            tokio::join!(machines_from_api(&client, machines), units_from_api(&client, units))
        }
        Source::File { path, read } => read.ask(path, machines, units).await,
    }
}

/// What all types of each of these lists cost, as far as the list states exactly one price; or why the list cannot be read. Of half a list nothing is given.
/// A list of a large region has some nine hundred products of 20 kB each, ten calls of the API.
pub async fn load_lists(
    options: &Options,
    wanted: &BTreeSet<PriceList>,
) -> BTreeMap<PriceList, Result<BTreeMap<PriceKey, ReadPrice>, Unpriced>> {
    let of_all = |why: &Unpriced| wanted.iter().map(|list| (list.clone(), Err(why.clone()))).collect();
    match &options.source {
        Source::Off => of_all(&Unpriced::Off),
        Source::Api { session, region } => {
            let client = session.pricing(region);
            let mut lists = BTreeMap::new();
            // One after the other: each is megabytes.
            for list in wanted {
                let rows = aws::api::machines(&client, list).await;
                lists.insert(list.clone(), rows.map(|rows| known(&rows, list)));
            }
            lists
        }
        Source::File { path, .. } => {
            let (path, wanted) = (path.clone(), wanted.clone());
            let read = tokio::task::spawn_blocking(move || {
                let is_of_any = |key: &PriceKey| wanted.contains(&key.list());
                let of_lists = Wanted { machines: &is_of_any, units: &|_| false };
                let rows = file::rows(&path, &of_lists).map_err(Unpriced::Source)?;
                let of = |list: PriceList| (list.clone(), Ok(known(&rows, &list)));
                Ok::<_, Unpriced>(wanted.into_iter().map(of).collect())
            });
            match read.await.map_err(|error| Unpriced::Source(error.to_string())).and_then(|read| read) {
                Ok(lists) => lists,
                Err(why) => of_all(&why),
            }
        }
    }
}

/// The exact prices of a list among these rows.
fn known(rows: &Rows, of: &PriceList) -> BTreeMap<PriceKey, ReadPrice> {
    let mut table = PriceTable::default();
    rows.machines.iter().filter(|row| row.key.list() == *of).for_each(|row| table.add(row.clone()));
    table.known().filter_map(|(key, _)| Some((key.clone(), table.read(key).ok()?))).collect()
}

/// One call for each key.
async fn machines_from_api(client: &aws_sdk_pricing::Client, wanted: &BTreeSet<PriceKey>) -> PriceTable {
    let mut answers = stream::iter(wanted.iter().cloned())
        .map(|key| async move { (aws::api::machine(client, &key).await, key) })
        .buffer_unordered(KEYS_AT_ONCE);
    let mut table = PriceTable::default();
    while let Some((rows, key)) = answers.next().await {
        match rows {
            Ok(rows) => rows.machines.into_iter().filter(|row| row.key == key).for_each(|row| table.add(row)),
            Err(why) => table.fail(key, why),
        }
    }
    table
}

/// One call for all keys of a region that one attribute tells: those of a volume type, of addresses, of snapshots.
async fn units_from_api(client: &aws_sdk_pricing::Client, wanted: &BTreeSet<UnitKey>) -> UnitTable {
    let mut together: BTreeMap<aws::api::UnitQuestion, Vec<UnitKey>> = BTreeMap::new();
    for key in wanted {
        together.entry(aws::api::UnitQuestion::of(key)).or_default().push(key.clone());
    }
    let mut answers = stream::iter(together)
        .map(|(question, keys)| async move { (aws::api::units(client, &question).await, keys) })
        .buffer_unordered(KEYS_AT_ONCE);
    let mut table = UnitTable::default();
    while let Some((rows, keys)) = answers.next().await {
        match rows {
            Ok(rows) => rows.units.into_iter().filter(|row| keys.contains(&row.key)).for_each(|row| table.add(row)),
            Err(why) => keys.into_iter().for_each(|key| table.fail(key, why.clone())),
        }
    }
    table
}
