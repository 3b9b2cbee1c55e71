//! What machines cost: asked for once a day, and as it was last read where it cannot be read today.

use super::{Context, Judged, SweepError};
use crate::{
    config::{Config, PricingSource},
    findings::Cost,
    inventory::aws,
    pricing::{self, PriceKey, PriceTable, Unpriced},
    store::KnownPrice,
};
use jiff::{SignedDuration, Timestamp};
use model::{HourlyRate, Provider, ResourceKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A price of the API is asked for again after so long: price lists change a few times a year.
const ASKED_EACH: SignedDuration = SignedDuration::from_hours(24);
/// A price that was last read longer ago than this is not known any more.
const GOOD_FOR: SignedDuration = SignedDuration::from_hours(24 * 30);

/// Looks up the prices of all that runs, each kind of machine once.
pub(super) async fn price(context: &Context, now: Timestamp, judged: &mut [Judged]) -> Result<(), SweepError> {
    let keys = judged.iter().filter_map(|judged| PriceKey::of(judged.subject.running()?).ok()).collect();
    let prices = Prices::read(context, now, &keys).await?;
    for judged in judged {
        judged.cost = match judged.subject.running().map(PriceKey::of) {
            Some(Ok(key)) => prices.cost(&key),
            Some(Err(why)) => Cost::Unknown { why: why.to_string() },
            None => onprem_cost(&context.config, &judged.subject.id),
        };
    }
    Ok(())
}

/// What was read today, and what was read before.
struct Prices {
    source: PricingSource,
    now: Timestamp,
    known: HashMap<PriceKey, KnownPrice>,
    table: PriceTable,
}

impl Prices {
    async fn read(context: &Context, now: Timestamp, keys: &BTreeSet<PriceKey>) -> Result<Self, SweepError> {
        let Context { store, config, .. } = context;
        let source = config.pricing.source;
        if keys.is_empty() || source == PricingSource::None {
            return Ok(Self { source, now, known: HashMap::new(), table: PriceTable::unavailable(Unpriced::Off) });
        }
        let known = store.prices(source.as_str(), keys).await?;
        let mut prices = Self { source, now, known, table: PriceTable::default() };
        let asked: BTreeSet<PriceKey> = keys.iter().filter(|key| prices.of_today(key).is_none()).cloned().collect();
        if asked.is_empty() {
            return Ok(prices);
        }
        prices.table = load(config, &asked).await;
        let read = asked.into_iter().filter_map(|key| Some((prices.table.on_demand(&key).ok()?, key)));
        let read: BTreeMap<PriceKey, HourlyRate> = read.map(|(per_hour, key)| (key, per_hour)).collect();
        if !read.is_empty() {
            store.put_prices(source.as_str(), &read, now).await?;
        }
        let dated = keys.iter().filter(|key| matches!(prices.cost(key), Cost::Known { as_of: Some(_), .. }));
        let (dated, why) = (dated.collect::<Vec<_>>(), |key: &&PriceKey| prices.table.on_demand(key).err());
        if let Some(why) = dated.first().and_then(why) {
            tracing::warn!(prices = dated.len(), %why, "prices cannot be read today; those that were last read are used");
        }
        Ok(prices)
    }

    /// What needs not be asked again. A file is read each time: whoever changes it wants to see what comes of it.
    fn of_today(&self, key: &PriceKey) -> Option<&KnownPrice> {
        let is_of_today = |known: &&KnownPrice| self.now.duration_since(known.read_at) < ASKED_EACH;
        self.known.get(key).filter(|_| self.source == PricingSource::Api).filter(is_of_today)
    }

    fn cost(&self, key: &PriceKey) -> Cost {
        if let Some(known) = self.of_today(key) {
            return Cost::Known { per_hour: known.per_hour, as_of: None };
        }
        let why = match self.table.on_demand(key) {
            Ok(per_hour) => return Cost::Known { per_hour, as_of: None },
            Err(why) => why,
        };
        // A file that has no price for it says so on purpose; one that cannot be read says nothing.
        let is_missing_today = self.source == PricingSource::Api || matches!(why, Unpriced::Source(_));
        let is_good = |known: &&KnownPrice| self.now.duration_since(known.read_at) <= GOOD_FOR;
        match self.known.get(key).filter(|_| is_missing_today).filter(is_good) {
            Some(known) => Cost::Known { per_hour: known.per_hour, as_of: Some(known.read_at) },
            None => Cost::Unknown { why: why.to_string() },
        }
    }
}

async fn load(config: &Config, keys: &BTreeSet<PriceKey>) -> PriceTable {
    let unavailable = |why: String| PriceTable::unavailable(Unpriced::Source(why));
    let source = match (config.pricing.source, &config.pricing.file) {
        (PricingSource::None, _) => pricing::Source::Off,
        (PricingSource::File, Some(file)) => pricing::Source::File(file.clone()),
        (PricingSource::File, None) => return unavailable("`pricing.file` is not set".to_owned()),
        (PricingSource::Api, _) => match aws::Session::open(&aws::Options::default()).await {
            Ok(Some(session)) => pricing::Source::Api { session, region: config.pricing.api_region.clone() },
            Ok(None) => return unavailable("there are no AWS credentials to ask with".to_owned()),
            Err(why) => return unavailable(why.to_string()),
        },
    };
    let keys: Vec<_> = keys.iter().cloned().collect();
    pricing::load(&pricing::Options { source }, &keys).await
}

/// What the owner says that a machine of their own costs.
fn onprem_cost(config: &Config, id: &ResourceKey) -> Cost {
    if id.provider != Provider::OnPrem {
        return Cost::Unknown { why: "no inventory lists the machine, so its type is not known".to_owned() };
    }
    let prices = &config.onprem.hourly_usd;
    let Some(price) = prices.get(&id.to_string()).or_else(|| prices.get("default")) else {
        return Cost::Unknown { why: "`onprem.hourly_usd` names no price for it".to_owned() };
    };
    match price.parse::<HourlyRate>() {
        Ok(per_hour) => Cost::Known { per_hour, as_of: None },
        Err(error) => Cost::Unknown { why: format!("`onprem.hourly_usd`: {error}") },
    }
}
