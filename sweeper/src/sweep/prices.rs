//! What machines cost, and what is billed by its amount costs per unit: asked for once a day, and as it was last read where it cannot be read today.

use super::{
    Context, SweepError,
    google_prices::{self, GoogleCatalogue},
    provider_metrics::At,
    spot,
};
use crate::{
    config::{Config, PricingSource},
    inventory::aws,
    pricing::{
        self, ASKED_EACH, Cost, GOOD_FOR, MachinePrice, OfferFile, PriceKey, PriceTable, ReadPrice, UnitKey,
        UnitPrices, UnitTable, Unpriced,
    },
    snapshot::Machine,
    store::KnownPrice,
};
use jiff::Timestamp;
use model::{HourlyRate, Provider, ResourceKey, UnitPrice};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Display,
    hash::Hash,
};

/// Lists of prices that are read as a whole, as this process last read them. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PriceLists {
    pub(super) google: GoogleCatalogue,
    pub(super) offer_file: OfferFile,
}

/// Looks up the prices of all that runs, each kind of machine once, and those per unit of these keys.
pub(super) async fn price(
    context: &Context,
    now: Timestamp,
    at: Option<At<'_>>,
    units: &BTreeSet<UnitKey>,
    machines: &mut [Machine],
) -> Result<UnitPrices, SweepError> {
    let (mut keys, mut spot, mut google) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for machine in machines.iter().filter_map(|machine| machine.subject.running()) {
        if machine.id.provider == Provider::Gcp {
            google.extend(pricing::google_bill(machine).ok().map(|bill| (bill.key.clone(), bill)));
            continue;
        }
        match MachinePrice::of(machine) {
            Ok(MachinePrice::Listed(key)) => drop(keys.insert(key)),
            Ok(MachinePrice::Spot(key)) => drop(spot.insert(key)),
            Err(_) => {}
        }
    }
    let (per_hour, per_unit) = read(context, now, &keys, units).await?;
    let of_google = google_prices::read(context, now, &google).await?;
    let spot = spot::read(context, at, now, &spot).await?;
    for machine in machines {
        machine.cost = match machine.subject.running().map(MachinePrice::of) {
            Some(Ok(MachinePrice::Listed(key))) if key.provider == Provider::Gcp => of_google.cost(&key),
            Some(Ok(MachinePrice::Listed(key))) => per_hour.cost(&key),
            Some(Ok(MachinePrice::Spot(key))) => spot.cost(&key),
            Some(Err(why)) => Cost::Unknown { why: why.to_string() },
            None => onprem_cost(&context.config, &machine.subject.id),
        };
    }
    Ok(units.iter().map(|key| (key.clone(), per_unit.of(key))).collect())
}

/// What was read today, and what was read before.
pub(super) struct Prices<K, P> {
    pub(super) source: PricingSource,
    pub(super) now: Timestamp,
    pub(super) known: HashMap<K, KnownPrice<P>>,
    pub(super) table: PriceTable<K, P>,
}

async fn read(
    context: &Context,
    now: Timestamp,
    machines: &BTreeSet<PriceKey>,
    units: &BTreeSet<UnitKey>,
) -> Result<(Prices<PriceKey, HourlyRate>, Prices<UnitKey, UnitPrice>), SweepError> {
    let Context { store, config, price_lists, .. } = context;
    let source = config.pricing.source;
    let (of_machines, of_units) = pricing::unavailable(Unpriced::Off);
    let mut of_machines = Prices { source, now, known: HashMap::new(), table: of_machines };
    let mut of_units = Prices { source, now, known: HashMap::new(), table: of_units };
    if source == PricingSource::None || (machines.is_empty() && units.is_empty()) {
        return Ok((of_machines, of_units));
    }
    of_machines.known = store.prices(source.as_str(), machines).await?;
    of_units.known = store.unit_prices(source.as_str(), units).await?;
    let asked = (of_machines.not_of_today(machines), of_units.not_of_today(units));
    (of_machines.table, of_units.table) = load(config, &price_lists.offer_file, &asked.0, &asked.1).await;
    let read = of_machines.read_with_rows(&asked.0);
    if !read.is_empty() {
        store.put_prices(source.as_str(), &read, now).await?;
    }
    let read = of_units.read(&asked.1);
    if !read.is_empty() {
        store.put_unit_prices(source.as_str(), &read, now).await?;
    }
    of_machines.warn_of_dated(machines);
    of_units.warn_of_dated(units);
    Ok((of_machines, of_units))
}

impl<K: Clone + Display + Eq + Hash + Ord, P: Copy + PartialEq> Prices<K, P> {
    /// What needs not be asked again. A file is asked each time, and read where it has changed: whoever changes it wants to see what comes of it.
    fn of_today(&self, key: &K) -> Option<&KnownPrice<P>> {
        let is_of_today = |known: &&KnownPrice<P>| self.now.duration_since(known.read_at) < ASKED_EACH;
        self.known.get(key).filter(|_| self.source == PricingSource::Api).filter(is_of_today)
    }

    pub(super) fn not_of_today(&self, keys: &BTreeSet<K>) -> BTreeSet<K> {
        keys.iter().filter(|key| self.of_today(key).is_none()).cloned().collect()
    }

    /// What the list says of what was asked for.
    fn read(&self, asked: &BTreeSet<K>) -> BTreeMap<K, P> {
        asked.iter().filter_map(|key| Some((key.clone(), self.table.on_demand(key).ok()?))).collect()
    }

    /// A price, and when the list last said so, where it cannot be read today.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn of(&self, key: &K) -> Result<(P, Option<Timestamp>), Unpriced> {
        if let Some(known) = self.of_today(key) {
            return Ok((known.price, None));
        }
        let why = match self.table.on_demand(key) {
            Ok(price) => return Ok((price, None)),
            Err(why) => why,
        };
        // A file that has no price for it says so on purpose; one that cannot be read says nothing.
        let is_missing_today = self.source == PricingSource::Api || matches!(why, Unpriced::Source(_));
        let is_good = |known: &&KnownPrice<P>| self.now.duration_since(known.read_at) <= GOOD_FOR;
        let known = self.known.get(key).filter(|_| is_missing_today).filter(is_good);
        known.map(|known| (known.price, Some(known.read_at))).ok_or(why)
    }

    pub(super) fn warn_of_dated(&self, keys: &BTreeSet<K>) {
        let is_dated = |key: &&K| matches!(self.of(key), Ok((_, Some(_))));
        let dated: Vec<&K> = keys.iter().filter(is_dated).collect();
        if let Some(why) = dated.first().and_then(|key| self.table.on_demand(key).err()) {
            tracing::warn!(prices = dated.len(), %why, "prices cannot be read today; those that were last read are used");
        }
    }
}

impl Prices<PriceKey, HourlyRate> {
    /// What the list says of what was asked for, and which rows do.
    pub(super) fn read_with_rows(&self, asked: &BTreeSet<PriceKey>) -> BTreeMap<PriceKey, ReadPrice> {
        asked.iter().filter_map(|key| Some((key.clone(), self.table.read(key).ok()?))).collect()
    }

    fn cost(&self, key: &PriceKey) -> Cost {
        match self.of(key) {
            Ok((per_hour, as_of)) => Cost::Known { per_hour, as_of },
            Err(why) => Cost::Unknown { why: why.to_string() },
        }
    }
}

/// What the configured price list says of these keys now, for whoever asks once; what fails is in the tables, as the reason.
pub async fn ask(config: &Config, machines: &BTreeSet<PriceKey>, units: &BTreeSet<UnitKey>) -> (PriceTable, UnitTable) {
    load(config, &OfferFile::default(), machines, units).await
}

pub(super) async fn load(
    config: &Config,
    file: &OfferFile,
    machines: &BTreeSet<PriceKey>,
    units: &BTreeSet<UnitKey>,
) -> (PriceTable, UnitTable) {
    if machines.is_empty() && units.is_empty() {
        return (PriceTable::default(), UnitTable::default());
    }
    match options(config, file).await {
        Ok(options) => pricing::load(&options, machines, units).await,
        Err(why) => pricing::unavailable(why),
    }
}

/// Where prices come from.
///
/// # Errors
/// Why nobody can be asked.
pub(super) async fn options(config: &Config, read: &OfferFile) -> Result<pricing::Options, Unpriced> {
    let source = match (config.pricing.source, &config.pricing.file) {
        (PricingSource::None, _) => pricing::Source::Off,
        (PricingSource::File, Some(file)) => pricing::Source::File { path: file.clone(), read: read.clone() },
        (PricingSource::File, None) => return Err(Unpriced::Source("`pricing.file` is not set".to_owned())),
        (PricingSource::Api, _) => match aws::Session::open(&aws::Options::default()).await {
            Ok(Some(session)) => pricing::Source::Api { session, region: config.pricing.api_region.clone() },
            Ok(None) => return Err(Unpriced::Source("there are no AWS credentials to ask with".to_owned())),
            Err(why) => return Err(Unpriced::Source(why.to_string())),
        },
    };
    Ok(pricing::Options { source })
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
