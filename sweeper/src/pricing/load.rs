//! Fills a price table for the keys that are needed, from the API or from a file.

use std::{collections::BTreeSet, fs::File, io::BufReader, path::PathBuf};

use futures::{StreamExt, stream};

use super::{PriceKey, PriceTable, Unpriced, aws};
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
    File(PathBuf),
    /// Nowhere: every price is unknown.
    Off,
}

/// Looks up the prices for these keys. What fails is in the table, as the reason why a price is not known.
pub async fn load(options: &Options, keys: &[PriceKey]) -> PriceTable {
    let wanted: BTreeSet<PriceKey> = keys.iter().cloned().collect();
    if wanted.is_empty() {
        return PriceTable::default();
    }
    match &options.source {
        Source::Off => PriceTable::unavailable(Unpriced::Off),
        Source::Api { session, region } => from_api(session, region, wanted).await,
        Source::File(path) => {
            let path = path.clone();
            tokio::task::spawn_blocking(move || from_file(&path, &wanted))
                .await
                .unwrap_or_else(|error| PriceTable::unavailable(Unpriced::Source(error.to_string())))
        }
    }
}

async fn from_api(session: &Session, region: &str, wanted: BTreeSet<PriceKey>) -> PriceTable {
    let client = session.pricing(region);
    let mut answers = stream::iter(wanted)
        .map(|key| {
            let client = client.clone();
            async move { (aws::api::rows(&client, &key).await, key) }
        })
        .buffer_unordered(KEYS_AT_ONCE);
    let mut table = PriceTable::default();
    while let Some((rows, key)) = answers.next().await {
        match rows {
            Ok(rows) => rows.into_iter().filter(|row| row.key == key).for_each(|row| table.add(row)),
            Err(why) => table.fail(key, why),
        }
    }
    table
}

fn from_file(path: &std::path::Path, wanted: &BTreeSet<PriceKey>) -> PriceTable {
    let read = File::open(path)
        .map_err(|error| error.to_string())
        .and_then(|file| aws::list::read(BufReader::new(file)).map_err(|error| error.to_string()));
    match read {
        Ok(rows) => {
            let mut table = PriceTable::default();
            rows.into_iter().filter(|row| wanted.contains(&row.key)).for_each(|row| table.add(row));
            table
        }
        Err(why) => PriceTable::unavailable(Unpriced::Source(format!("{}: {why}", path.display()))),
    }
}
