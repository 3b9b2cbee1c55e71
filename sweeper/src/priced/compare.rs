//! What the price list says now of what is kept.

use super::{Machines, keys_of, read, why_none};
use crate::{
    config::{Config, PricingSource},
    pricing::{PriceKey, ReadPrice, UnitKey, Unpriced, google_bill},
    store::{KnownPrice, Store},
    sweep::{ask_google_prices, ask_prices},
};
use jiff::Timestamp;
use model::{Provider, UnitPrice};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// All that was compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Which list was asked: `api`, `file` or `none`.
    pub source: &'static str,
    /// Whether what it says is kept now.
    pub kept: bool,
    /// Each price, of machines and per unit.
    pub prices: Vec<Compared>,
    /// Spot instances, whose prices each sweep asks EC2 for and which are not compared.
    pub spot_machines: usize,
}

/// One price, kept and now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Exactly of what, in words.
    pub of: String,
    /// US dollars, per hour or unit, as they are kept; none if no price is.
    pub usd_kept: Option<String>,
    /// As the list says now; none if that is not known.
    pub usd_now: Option<String>,
    /// Why it is not known now.
    pub why_not_known: Option<String>,
}

impl Compared {
    /// Whether the list says another price than is kept, or says one no more. One that has no price, as before, is no difference.
    #[must_use]
    pub fn is_other(&self) -> bool {
        self.usd_kept != self.usd_now
    }

    fn of<P: ToString>(of: String, kept: Option<&P>, now: Result<P, String>) -> Self {
        let text = |price: &P| price.to_string().trim_start_matches('$').trim_end_matches("/h").to_owned();
        let usd_kept = kept.map(text);
        match now {
            Ok(now) => Self { of, usd_kept, usd_now: Some(text(&now)), why_not_known: None },
            Err(why) => Self { of, usd_kept, usd_now: None, why_not_known: Some(why) },
        }
    }
}

/// Asks the price list for the price of every machine that runs and of every unit that a price is kept of, and compares; with `keep`, what it says is kept.
///
/// # Errors
/// If the database does not answer or holds what cannot be read.
pub async fn compare(store: &Store, config: &Config, keep: bool) -> anyhow::Result<Comparison> {
    let source = config.pricing.source;
    let at = store.now().await?;
    let machines = read(store, at, None).await?;
    let spot_machines = machines.spot.values().map(Vec::len).sum();
    let keys: BTreeSet<PriceKey> = machines.listed.keys().cloned().collect();
    let kept = store.prices(source.as_str(), &keys).await?;
    let per_unit = store.all_unit_prices(source.as_str()).await?;
    let of_aws = keys_of(&machines, Provider::Aws);
    let units: BTreeSet<UnitKey> = per_unit.keys().cloned().collect();
    let (table, unit_table) = ask_prices(config, &of_aws, &units).await;
    let read_now = |key: &PriceKey| table.read(key).map_err(|why| why.to_string());
    let mut now: BTreeMap<PriceKey, Result<ReadPrice, String>> =
        of_aws.into_iter().map(|key| (key.clone(), read_now(&key))).collect();
    now.extend(of_google(config, &machines).await);
    let units_now: BTreeMap<UnitKey, Result<UnitPrice, String>> = units
        .into_iter()
        .map(|key| {
            let price = unit_table.on_demand(&key).map_err(|why| why.to_string());
            (key, price)
        })
        .collect();
    if keep {
        keep_all(store, source, &now, &units_now, at).await?;
    }
    let machines = now.into_iter().map(|(key, read)| {
        let kept = kept.get(&key).map(|known| known.price);
        Compared::of(key.to_string(), kept.as_ref(), read.map(|read| read.per_hour))
    });
    let units = units_now.into_iter().map(|(key, price)| {
        let kept = per_unit.get(&key).map(|known: &KnownPrice<UnitPrice>| known.price);
        Compared::of(key.to_string(), kept.as_ref(), price)
    });
    Ok(Comparison { source: source.as_str(), kept: keep, prices: machines.chain(units).collect(), spot_machines })
}

async fn of_google(config: &Config, machines: &Machines) -> BTreeMap<PriceKey, Result<ReadPrice, String>> {
    let keys = keys_of(machines, Provider::Gcp);
    let source = config.pricing.source;
    if keys.is_empty() || source != PricingSource::Api {
        return keys.into_iter().map(|key| (key.clone(), Err(why_none(source, &key)))).collect();
    }
    let list = ask_google_prices(&config.gcp).await;
    let price = |key: &PriceKey| {
        let one = machines.listed.get(key).and_then(|of| of.first()).ok_or(Unpriced::NotListed("machines"))?;
        list.as_ref().map_err(Clone::clone)?.price(&google_bill(one)?)
    };
    keys.into_iter().map(|key| (key.clone(), price(&key).map_err(|why| why.to_string()))).collect()
}

/// Keeps what was read; of what was not, what was read before stays, as after a sweep.
async fn keep_all(
    store: &Store,
    source: PricingSource,
    machines: &BTreeMap<PriceKey, Result<ReadPrice, String>>,
    units: &BTreeMap<UnitKey, Result<UnitPrice, String>>,
    at: Timestamp,
) -> anyhow::Result<()> {
    fn known<K: Clone + Ord, P: Clone>(all: &BTreeMap<K, Result<P, String>>) -> BTreeMap<K, P> {
        all.iter().filter_map(|(key, read)| Some((key.clone(), read.clone().ok()?))).collect()
    }
    let (machines, units) = (known(machines), known(units));
    if !machines.is_empty() {
        store.put_prices(source.as_str(), &machines, at).await?;
    }
    if !units.is_empty() {
        store.put_unit_prices(source.as_str(), &units, at).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::HourlyRate;

    #[test]
    fn another_price_and_one_that_is_gone_are_differences_and_one_that_never_was_is_none() {
        let rate = HourlyRate::from_micros;
        let of = |kept: Option<i64>, now: Result<i64, &str>| {
            let compared =
                Compared::of("x".to_owned(), kept.map(rate).as_ref(), now.map(rate).map_err(ToOwned::to_owned));
            (compared.is_other(), compared.usd_kept, compared.usd_now)
        };
        let usd = |text: &str| Some(text.to_owned());
        assert_eq!(of(Some(96_000), Ok(96_000)), (false, usd("0.096"), usd("0.096")));
        assert_eq!(of(Some(96_000), Ok(100_000)), (true, usd("0.096"), usd("0.10")));
        assert_eq!(of(None, Ok(96_000)), (true, None, usd("0.096")));
        assert_eq!(of(Some(96_000), Err("no row")), (true, usd("0.096"), None));
        assert_eq!(of(None, Err("no row")), (false, None, None));
    }
}
