//! Which price each machine has that runs, since when, and which rows of which list say so; and what the list says now.

mod compare;

pub use compare::{Compared, Comparison, compare};

use crate::{
    config::{Config, PricingSource},
    inventory::{Instance, Kind},
    pricing::{ASKED_EACH, GOOD_FOR, MachinePrice, PriceKey, SPOT_GOOD_FOR, SpotKey, Unpriced},
    store::{KeptPrice, Store, StoreError},
    sweep::ask_prices,
};
use jiff::{SignedDuration, Timestamp};
use model::{Provider, ResourceKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A price is asked for again after a day, by the next sweep, which may be three hours later.
const OVERDUE_AFTER: SignedDuration = SignedDuration::from_secs(ASKED_EACH.as_secs() + 3 * 3_600);

/// Prices of what runs, as they were last read.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// As of when.
    pub at: Timestamp,
    /// Which list: `api`, `file` or `none`.
    pub source: &'static str,
    /// Of machines, by the hour; what most machines have comes first.
    pub prices: Vec<Priced>,
    /// Machines without a known price.
    pub not_known: Vec<NotPriced>,
    /// Of what is billed by its amount, as far as it was read within 30 days; none where one machine or type was asked for.
    pub per_unit: Vec<PerUnit>,
}

/// The price of one kind of machine.
#[derive(Clone, Debug, Serialize)]
pub struct Priced {
    /// Exactly of what, in words.
    pub of: String,
    /// Keys of the running machines that cost so.
    pub machines: Vec<String>,
    /// Micro-dollars per hour.
    pub micro_usd_per_hour: i64,
    /// Since when it is in effect: of a list the first time that it was read so, of Spot the moment that EC2 told.
    pub since: Timestamp,
    /// When it was last read so.
    pub read_at: Timestamp,
    /// The rows of the list that it rests on, in the list's own words; none of a Spot price, which has none, and of what was read before they were kept.
    pub source_rows: Option<String>,
    /// What it was before, oldest first; of Spot none is told.
    pub before: Vec<Before>,
}

impl Answer {
    /// How many prices were not read again when they were due, a day after the last time: why, only the list itself can say.
    #[must_use]
    pub fn overdue(&self) -> usize {
        self.prices.iter().filter(|price| self.at.duration_since(price.read_at) > OVERDUE_AFTER).count()
    }
}

/// What a price was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Before {
    /// Micro-dollars per hour.
    pub micro_usd_per_hour: i64,
    /// Since when.
    pub since: Timestamp,
}

/// Machines whose price is not known, for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct NotPriced {
    /// The reason.
    pub why: String,
    /// Their keys.
    pub machines: Vec<String>,
}

/// The price of what is billed by its amount.
#[derive(Clone, Debug, Serialize)]
pub struct PerUnit {
    /// `EBS:VolumeUsage.gp3 in eu-central-1`
    pub of: String,
    /// US dollars per unit, a decimal number.
    pub usd: String,
    /// Since when it was read so.
    pub since: Timestamp,
    /// When it was last read so.
    pub read_at: Timestamp,
}

/// Running machines by their price; those of which it cannot be told which price is theirs, by the reason.
#[derive(Debug, Default)]
struct Machines {
    listed: BTreeMap<PriceKey, Vec<Instance>>,
    spot: BTreeMap<SpotKey, Vec<Instance>>,
    not_known: BTreeMap<String, Vec<String>>,
}

/// What each running machine costs that `wanted` names: by its key, the end of it behind a colon, its name or its type; all if none.
///
/// # Errors
/// If the database does not answer or holds what cannot be read.
pub async fn priced(store: &Store, config: &Config, wanted: Option<&str>) -> Result<Answer, StoreError> {
    let source = config.pricing.source;
    let at = store.now().await?;
    let mut machines = read(store, at, wanted).await?;
    let mut not_known = std::mem::take(&mut machines.not_known);
    let mut kept = BTreeMap::<PriceKey, Vec<KeptPrice>>::new();
    for price in store.kept_prices(source.as_str()).await? {
        if machines.listed.contains_key(&price.key) {
            kept.entry(price.key.clone()).or_default().push(price);
        }
    }
    let not_in_file = not_in_file(config, &machines).await;
    let mut prices = Vec::new();
    for (key, of) in machines.listed {
        let keys = keys(&of);
        if let Some(why) = not_in_file.get(&key) {
            not_known.entry(why.clone()).or_default().extend(keys);
            continue;
        }
        match latest(source, &key, kept.remove(&key).unwrap_or_default(), at) {
            Ok(price) => prices.push(Priced { machines: keys, ..price }),
            Err(why) => not_known.entry(why).or_default().extend(keys),
        }
    }
    let spot = store.spot_prices(&machines.spot.keys().cloned().collect()).await?;
    for (key, of) in machines.spot {
        let keys = keys(&of);
        let known = spot.get(&key).filter(|_| source == PricingSource::Api);
        match known.filter(|known| is_good(known.read_at, at, SPOT_GOOD_FOR)) {
            Some(known) => prices.push(Priced {
                of: format!("{key}, Spot"),
                machines: keys,
                micro_usd_per_hour: known.change.per_hour.per_hour().micros(),
                since: known.change.at,
                read_at: known.read_at,
                source_rows: None,
                before: Vec::new(),
            }),
            None => not_known.entry(why_no_spot(source, &key)).or_default().extend(keys),
        }
    }
    prices.sort_by(|a, b| b.machines.len().cmp(&a.machines.len()).then_with(|| a.of.cmp(&b.of)));
    let mut not_known: Vec<NotPriced> =
        not_known.into_iter().map(|(why, machines)| NotPriced { why, machines }).collect();
    not_known.sort_by_key(|one| std::cmp::Reverse(one.machines.len()));
    let per_unit = match wanted {
        None => per_unit(store, source, at).await?,
        Some(_) => Vec::new(),
    };
    Ok(Answer { at, source: source.as_str(), prices, not_known, per_unit })
}

/// What a file that can be read has no price of, with the reason: it says so on purpose, so that sweeps take nothing else for it, whatever it had before.
async fn not_in_file(config: &Config, machines: &Machines) -> BTreeMap<PriceKey, String> {
    if config.pricing.source != PricingSource::File {
        return BTreeMap::new();
    }
    let keys = keys_of(machines, Provider::Aws);
    let (table, _) = ask_prices(config, &keys, &BTreeSet::new()).await;
    let missing = keys.into_iter().filter_map(|key| match table.on_demand(&key) {
        Ok(_) | Err(Unpriced::Source(_)) => None,
        Err(why) => Some((key, why.to_string())),
    });
    missing.collect()
}

async fn per_unit(store: &Store, source: PricingSource, at: Timestamp) -> Result<Vec<PerUnit>, StoreError> {
    let known = store.all_unit_prices(source.as_str()).await?;
    let good = known.into_iter().filter(|(_, known)| is_good(known.read_at, at, GOOD_FOR));
    let told = good.map(|(key, known)| PerUnit {
        of: key.to_string(),
        usd: known.price.to_string().trim_start_matches('$').to_owned(),
        since: known.effective_from,
        read_at: known.read_at,
    });
    Ok(told.collect())
}

/// The running machines that are named so, of what the last complete listings showed.
async fn read(store: &Store, at: Timestamp, wanted: Option<&str>) -> Result<Machines, StoreError> {
    let mut machines = Machines::default();
    for version in store.resources_at(at, Some(Kind::from(ResourceKind::Instance))).await? {
        let Ok(instance) = serde_json::from_value::<Instance>(version.record) else {
            let why = "what the machine is cannot be read by this version".to_owned();
            machines.not_known.entry(why).or_default().push(version.resource);
            continue;
        };
        if instance.state.runs() != Some(true) || !wanted.is_none_or(|wanted| is_named(&instance, wanted)) {
            continue;
        }
        match MachinePrice::of(&instance) {
            Ok(MachinePrice::Listed(key)) => machines.listed.entry(key).or_default().push(instance),
            Ok(MachinePrice::Spot(key)) => machines.spot.entry(key).or_default().push(instance),
            Err(why) => machines.not_known.entry(why.to_string()).or_default().push(instance.id.to_string()),
        }
    }
    Ok(machines)
}

fn is_named(instance: &Instance, wanted: &str) -> bool {
    let key = instance.id.to_string();
    key == wanted
        || key.ends_with(&format!(":{wanted}"))
        || [&instance.name, &instance.instance_type].into_iter().any(|name| name.as_deref() == Some(wanted))
}

fn keys(instances: &[Instance]) -> Vec<String> {
    instances.iter().map(|instance| instance.id.to_string()).collect()
}

fn is_good(read_at: Timestamp, at: Timestamp, good_for: SignedDuration) -> bool {
    at.duration_since(read_at) <= good_for
}

/// The last of these prices, if it still counts.
fn latest(source: PricingSource, key: &PriceKey, mut kept: Vec<KeptPrice>, at: Timestamp) -> Result<Priced, String> {
    let Some(KeptPrice { known, source_rows, .. }) = kept.pop() else { return Err(why_none(source, key)) };
    if !is_good(known.read_at, at, GOOD_FOR) {
        let day = known.read_at.strftime("%Y-%m-%d");
        return Err(format!("the price of {key} was last read on {day}, which is too long ago to count"));
    }
    let before = kept.iter().map(|before| Before {
        micro_usd_per_hour: before.known.price.per_hour().micros(),
        since: before.known.effective_from,
    });
    Ok(Priced {
        of: key.to_string(),
        machines: Vec::new(),
        micro_usd_per_hour: known.price.per_hour().micros(),
        since: known.effective_from,
        read_at: known.read_at,
        source_rows,
        before: before.collect(),
    })
}

fn why_none(source: PricingSource, key: &PriceKey) -> String {
    match source {
        PricingSource::None => Unpriced::Off.to_string(),
        PricingSource::File if key.provider == Provider::Gcp => Unpriced::GoogleNotInFile.to_string(),
        _ => format!("no sweep has read exactly one price of {key}"),
    }
}

fn why_no_spot(source: PricingSource, key: &SpotKey) -> String {
    match source {
        PricingSource::None => Unpriced::Off.to_string(),
        PricingSource::File => Unpriced::Spot.to_string(),
        PricingSource::Api => format!("no Spot price of {key} was read within the last day"),
    }
}

/// All price keys of these machines of one provider.
fn keys_of(machines: &Machines, provider: Provider) -> BTreeSet<PriceKey> {
    machines.listed.keys().filter(|key| key.provider == provider).cloned().collect()
}
