//! Which machines there were, when each was billed, and whose it is.

use super::Settings;
use crate::{
    config::PricingSource,
    identity::Node,
    inventory::{Instance, Scope},
    pricing::{ASKED_EACH, GOOD_FOR, PriceKey, Unpriced},
    store::{KnownPrice, ListedPlace, MachineVersion, Store, StoreError},
};
use costs::{Billed, Hour, Place, PriceFrom, Stretch, Value, Version, hours, priced, stretches};
use model::{HourlyRate, Provider, ResourceKey};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// A machine through the time that is asked about.
#[derive(Debug)]
pub(super) struct Machine {
    /// Its key, which is its node's id.
    pub(super) key: Arc<str>,
    /// Its place among all.
    pub(super) number: u64,
    /// Whether an agent has joined from it.
    pub(super) is_node: bool,
    stretches: Vec<Stretch>,
    /// By version.
    places: Vec<Place>,
    /// When each version was first seen, in milliseconds since 1970-01-01 UTC and in order: by this it is found again, whatever others are read.
    versions: Vec<i64>,
}

impl Machine {
    /// What each hour comes to.
    pub(super) fn hours(&self, from_s: i64, to_s: i64) -> Vec<Hour> {
        hours(&self.stretches, from_s, to_s)
    }

    /// What is known of it in this version.
    pub(super) fn place(&self, version: usize) -> Option<&Place> {
        self.places.get(version)
    }

    /// A name of this version.
    pub(super) fn name(&self, version: usize) -> Option<i64> {
        self.versions.get(version).copied()
    }

    /// What is known of it in the version of this name; none if there is none.
    pub(super) fn place_of(&self, name: i64) -> Option<&Place> {
        self.versions.binary_search(&name).ok().and_then(|version| self.places.get(version))
    }

    /// The parts of its stretches within this time, in the order in which bills are made of them.
    pub(super) fn within(&self, from_s: i64, to_s: i64) -> impl Iterator<Item = Stretch> {
        let cut = move |stretch: &Stretch| {
            let (from_s, until_s) = (stretch.from_s.max(from_s), stretch.until_s.min(to_s));
            (from_s < until_s).then(|| Stretch { from_s, until_s, ..stretch.clone() })
        };
        self.stretches.iter().filter_map(cut)
    }
}

/// What is asked of the database once for all machines.
struct Known<'a> {
    settings: &'a Settings,
    prices: HashMap<PriceKey, Vec<PriceFrom>>,
    not_listed: HashMap<ListedPlace, Vec<(i64, i64)>>,
    launchers: HashMap<String, String>,
    now_s: i64,
    texts: HashSet<Arc<str>>,
}

/// All machines that were listed since this second, and the nodes that no list has.
pub(super) async fn read(
    store: &Store,
    settings: &Settings,
    from_s: i64,
    now_s: i64,
) -> Result<Vec<Machine>, StoreError> {
    let mut machines = Vec::new();
    let mut nodes = each(store, settings, (from_s, now_s), |machine, _| machines.push(machine)).await?;
    for machine in &mut machines {
        machine.is_node = nodes.remove(&machine.key).is_some();
    }
    machines.extend(nodes.into_values());
    for (machine, number) in machines.iter_mut().zip(1..) {
        machine.number = number;
    }
    Ok(machines)
}

/// Hands over each machine that was listed since this second, with what each of its versions was where this version can read that; and returns each node as a machine of its own, by its key: those that no list has are none
/// of the others.
pub(super) async fn each(
    store: &Store,
    settings: &Settings,
    (from_s, now_s): (i64, i64),
    mut told: impl FnMut(Machine, &[Option<Instance>]),
) -> Result<BTreeMap<Arc<str>, Machine>, StoreError> {
    let nodes = store.nodes().await?;
    let in_seconds = |gaps: Vec<(i64, i64)>| {
        let second = |ms: i64| if ms == i64::MAX { ms } else { ms.div_euclid(1_000) };
        gaps.into_iter().map(|(from, until)| (second(from), second(until))).collect()
    };
    let not_listed = store.machines_not_listed().await?;
    let mut known = Known {
        settings,
        prices: prices(store, settings.source).await?,
        not_listed: not_listed.into_iter().map(|(place, gaps)| (place, in_seconds(gaps))).collect(),
        launchers: store.launchers().await?,
        now_s,
        texts: HashSet::new(),
    };
    let mut versions = Vec::<MachineVersion>::new();
    let mut tell = |known: &mut Known<'_>, versions: &[MachineVersion]| {
        let instances: Vec<Option<Instance>> =
            versions.iter().map(|version| serde_json::from_str(&version.record).ok()).collect();
        if let Some(machine) = known.machine(versions, &instances) {
            told(machine, &instances);
        }
    };
    let mut take = |version: MachineVersion| {
        if versions.last().is_some_and(|last| last.resource != version.resource) {
            tell(&mut known, &std::mem::take(&mut versions));
        }
        versions.push(version);
    };
    store.each_machine_version(from_s.saturating_mul(1_000), &mut take).await?;
    tell(&mut known, &versions);
    Ok(nodes.iter().map(|node| known.node(node)).map(|node| (Arc::clone(&node.key), node)).collect())
}

/// The prices of this list, as they came into effect. Prices are asked for once a day: the first one is taken to have been in force for as long.
async fn prices(store: &Store, source: PricingSource) -> Result<HashMap<PriceKey, Vec<PriceFrom>>, StoreError> {
    let in_force = |known: &KnownPrice| PriceFrom {
        from_s: known.effective_from.as_second(),
        good_until_s: known.read_at.as_second().saturating_add(GOOD_FOR.as_secs()),
        per_hour: known.price,
    };
    let history = store.price_history(source.as_str()).await?.into_iter();
    let prices = history.map(|(key, known)| {
        let mut prices: Vec<PriceFrom> = known.iter().map(in_force).collect();
        if let Some(first) = prices.first_mut() {
            first.from_s = first.from_s.saturating_sub(ASKED_EACH.as_secs());
        }
        (key, prices)
    });
    Ok(prices.collect())
}

impl Known<'_> {
    /// One copy of each text.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn value(&mut self, text: &str) -> Value {
        (!text.is_empty()).then(|| self.text(text))
    }

    /// A machine that is listed, of all its versions.
    fn machine(&mut self, versions: &[MachineVersion], instances: &[Option<Instance>]) -> Option<Machine> {
        let text = &versions.first()?.resource;
        let Ok(key) = text.parse::<ResourceKey>() else {
            tracing::error!(
                resource = text,
                "a machine of the history has no key that this version knows; its cost is told nowhere"
            );
            return None;
        };
        let billed: Vec<Version> = versions.iter().zip(instances).map(billed).collect();
        let gaps = self.gaps(&key);
        let mut parts = Vec::new();
        for stretch in stretches(&billed, &gaps, self.now_s) {
            let instance = instances.get(stretch.version).and_then(Option::as_ref);
            parts.extend(self.priced(&stretch, instance));
        }
        let places = instances.iter().map(|instance| self.place(&key, instance.as_ref())).collect();
        let versions = versions.iter().map(|version| version.from_unix_ms).collect();
        Some(Machine { key: self.text(text), number: 0, is_node: false, stretches: parts, places, versions })
    }

    /// When the list that the machine is in was not read. Of Google Cloud one holds all zones, unless one failed alone.
    fn gaps(&self, key: &ResourceKey) -> Vec<(i64, i64)> {
        let of = |region: &str| {
            let place = (key.provider.as_str().to_owned(), key.account.clone(), region.to_owned());
            self.not_listed.get(&place).cloned()
        };
        of(&key.location).or_else(|| of(Scope::EVERYWHERE)).unwrap_or_else(|| vec![(i64::MIN, i64::MAX)])
    }

    fn priced(&mut self, stretch: &Stretch, instance: Option<&Instance>) -> Vec<Stretch> {
        let key = match instance.map(PriceKey::of) {
            Some(Ok(key)) => key,
            Some(Err(why)) => return priced(stretch, &[], &self.text(&why.to_string())),
            None => return priced(stretch, &[], &self.text("what the machine was cannot be read by this version")),
        };
        let why = match self.settings.source {
            PricingSource::None => Unpriced::Off.to_string(),
            _ => format!("no price was read at that time for {key}"),
        };
        let why = self.text(&why);
        priced(stretch, self.prices.get(&key).map_or(&[], Vec::as_slice), &why)
    }

    fn place(&mut self, key: &ResourceKey, instance: Option<&Instance>) -> Place {
        let text = key.to_string();
        let user = self.launchers.get(&text).cloned();
        let tags = instance.map(|instance| &instance.tags);
        let costs = &self.settings.costs;
        let tag = |wanted: &String| {
            let found =
                tags?.iter().find(|(name, value)| name.eq_ignore_ascii_case(wanted) && !value.trim().is_empty());
            found.map(|(_, value)| value.clone())
        };
        let team = costs.team_tags.iter().find_map(tag).or_else(|| costs.account_teams.get(&key.account).cloned());
        Place {
            instance: self.value(&text),
            user: user.and_then(|user| self.value(&user)),
            team: team.and_then(|team| self.value(&team)),
            account: self.value(&key.account),
            provider: self.value(key.provider.as_str()),
            region: self.value(&key.location),
        }
    }

    /// A node that no list has: of one on premises the configuration says what it costs, from its join to its last heartbeat.
    fn node(&mut self, node: &Node) -> Machine {
        let id = node.node_id.to_string();
        let key = id.parse::<ResourceKey>().ok();
        let billed = match &key {
            Some(key) if key.provider == Provider::OnPrem => match self.onprem(&id) {
                Ok(price) => Billed::At(price),
                Err(why) => Billed::NotKnown(self.text(&why)),
            },
            _ => Billed::NotKnown(self.text("no inventory lists the machine, so its type is not known")),
        };
        let until_s = node.last_seen_at.unwrap_or(node.joined_at).as_second();
        let stretch = Stretch { from_s: node.joined_at.as_second(), until_s, billed, version: 0 };
        let places: Vec<Place> = key.iter().map(|key| self.place(key, None)).collect();
        // One that is of all time.
        let versions = vec![0; places.len()];
        Machine { key: self.text(&id), number: 0, is_node: true, stretches: vec![stretch], places, versions }
    }

    fn onprem(&self, id: &str) -> Result<HourlyRate, String> {
        let prices = &self.settings.onprem.hourly_usd;
        let price = prices.get(id).or_else(|| prices.get("default"));
        let price = price.ok_or_else(|| "`onprem.hourly_usd` names no price for it".to_owned())?;
        price.parse().map_err(|error| format!("`onprem.hourly_usd`: {error}"))
    }
}

/// What of a version decides when the machine is billed.
fn billed((version, instance): (&MachineVersion, &Option<Instance>)) -> Version {
    let second = |ms: i64| ms.div_euclid(1_000);
    Version {
        from_s: second(version.from_unix_ms),
        until_s: version.until_unix_ms.map(second),
        // What is about to start is not billed yet, and has its start's time once it runs.
        runs: instance.as_ref().and_then(|instance| match &instance.state {
            crate::inventory::InstanceState::Pending => Some(false),
            state => state.runs(),
        }),
        launched_s: instance.as_ref().and_then(|instance| instance.launched_at).map(|at| at.as_second()),
    }
}
