//! What machines of Google Cloud cost, by its catalogue: read as a whole once a day in each process that sweeps, and kept by machine.

use super::{Context, prices::Prices};
use crate::{
    config::{GcpConfig, PricingSource},
    inventory::gcp,
    pricing::{ASKED_EACH, Bill, PriceKey, PriceTable, SkuFilter, SkuList, Unpriced},
    store::StoreError,
};
use jiff::{SignedDuration, Timestamp};
use model::HourlyRate;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Mutex;

/// A catalogue that could not be read is asked for again after so long.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// A sweep waits so long for it: prices are no reason to hold one up.
const READ_WITHIN: Duration = Duration::from_secs(120);

/// Google's catalogue as this process last read it: a megabyte or two of what machines may be billed for.
#[derive(Clone, Debug, Default)]
pub(super) struct GoogleCatalogue(Arc<Mutex<Option<Read>>>);

#[derive(Clone, Debug)]
struct Read {
    at: Timestamp,
    list: Result<Arc<SkuList>, Unpriced>,
}

impl GoogleCatalogue {
    /// The catalogue of the last day. Who sweeps beside waits for whoever reads it.
    async fn read(&self, config: &GcpConfig, now: Timestamp) -> Read {
        let mut held = self.0.lock().await;
        let lasts = |read: &Read| if read.list.is_ok() { ASKED_EACH } else { AGAIN_AFTER };
        if let Some(read) = held.as_ref().filter(|read| now.duration_since(read.at) < lasts(read)) {
            return read.clone();
        }
        let list = ask(config).await;
        if let Err(why) = &list {
            tracing::warn!(%why, "what machines of Google Cloud cost cannot be read; what was last read counts for 30 days");
        }
        let read = Read { at: now, list: list.map(Arc::new) };
        *held = Some(read.clone());
        read
    }
}

/// The whole catalogue, as far as machines are billed by it.
///
/// # Errors
/// Why it could not be read, or not within two minutes.
pub async fn ask(config: &GcpConfig) -> Result<SkuList, Unpriced> {
    let late = || Err(Unpriced::Source(format!("Google's catalogue was not read within {} s", READ_WITHIN.as_secs())));
    tokio::time::timeout(READ_WITHIN, read_all(config)).await.unwrap_or_else(|_| late())
}

async fn read_all(config: &GcpConfig) -> Result<SkuList, Unpriced> {
    let failed = |why: String| Unpriced::Source(format!("Google's catalogue: {why}"));
    let session = match gcp::Session::open(&config.options()).await {
        Ok(Some(session)) => session,
        Ok(None) => return Err(failed("there are no Google credentials to ask with".to_owned())),
        Err(why) => return Err(failed(why.to_string())),
    };
    let filter = SkuFilter::default();
    let kept = gcp::catalogue(&session, |sku| filter.keep(sku)).await.map_err(|why| failed(why.to_string()))?;
    let list: SkuList = kept.into_iter().collect();
    if list.is_empty() {
        return Err(failed("it names no machine's price".to_owned()));
    }
    tracing::debug!(prices = list.len(), "Google's catalogue was read");
    Ok(list)
}

/// The prices of these machines: as they were read today, else as the catalogue has them.
pub(super) async fn read(
    context: &Context,
    now: Timestamp,
    bills: &BTreeMap<PriceKey, Bill>,
) -> Result<Prices<PriceKey, HourlyRate>, StoreError> {
    let Context { store, config, price_lists, .. } = context;
    let source = config.pricing.source;
    let mut prices = Prices { source, now, known: HashMap::new(), table: PriceTable::unavailable(Unpriced::Off) };
    // Whoever prices by a file of AWS's, or not at all, has said that nobody is to be asked.
    if source != PricingSource::Api || bills.is_empty() {
        if source == PricingSource::File {
            prices.table = PriceTable::unavailable(Unpriced::GoogleNotInFile);
        }
        return Ok(prices);
    }
    let keys: BTreeSet<PriceKey> = bills.keys().cloned().collect();
    prices.known = store.prices(source.as_str(), &keys).await?;
    let asked = prices.not_of_today(&keys);
    if asked.is_empty() {
        return Ok(prices);
    }
    let Read { at, list } = price_lists.google.read(&config.gcp, now).await;
    let mut table = PriceTable::default();
    for key in &asked {
        let Some(bill) = bills.get(key) else { continue };
        match list.as_ref().map_err(Clone::clone).and_then(|list| list.price(bill)) {
            Ok(price) => table.put(key.clone(), price),
            Err(why) => {
                // What the whole list does not have, or has twice, is not known, whatever it had before.
                if !matches!(why, Unpriced::Source(_)) {
                    prices.known.remove(key);
                }
                table.fail(key.clone(), why);
            }
        }
    }
    prices.table = table;
    let kept = prices.read_with_rows(&asked);
    if !kept.is_empty() {
        store.put_prices(source.as_str(), &kept, at).await?;
    }
    prices.warn_of_dated(&keys);
    Ok(prices)
}
