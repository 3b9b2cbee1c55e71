//! Recommendations for machines, from what the database holds: the history, hourly rollups, what zones offer, and prices. No provider is asked.
//!
//! Of the rules of the crate `recommender`, *rightsizing* is handed data. Rollups are read machine by machine: of thirty days some 700. What is not known makes a reason to recommend nothing, never a zero.

mod answer;
mod catalogue;
mod observed;
mod then;
mod words;

pub use answer::{Answer, ConsideredType, Observation, Recommended, Refused};

use crate::{
    config::{Config, PricingSource},
    identity::Node,
    inventory::{Instance, InstanceState, Inventory, KeptProtection, Kind, Offered, Schedulers, Scope},
    store::{Store, StoreError},
};
use answer::Subject;
use catalogue::ListPrices;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::{
    Provider, ResourceKey,
    machine::{Machine, Protection},
};
use observed::{Detail, Was};
use recommender::{
    blocker::{Blocker, NotRecommended},
    catalogue::Catalogue,
    demand::{Demand, Record, Span},
    policy::Policy,
    rank,
    recommendation::Recommendation,
    rules::rightsize::{self, SizedMachine},
};
use std::collections::{BTreeMap, HashMap};

/// So far back hours are read: what comes once a month is among them.
const LOOKBACK: SignedDuration = SignedDuration::from_hours(30 * 24);
/// What protects a machine may have changed after so long, as of plans.
const PROTECTION_GOOD_FOR: SignedDuration = recommender::rules::VALID_FOR;

/// What of the settings decides what is recommended.
#[derive(Clone, Debug)]
pub struct Settings {
    policy: Policy,
    zone: TimeZone,
    source: PricingSource,
}

impl Settings {
    /// Those of this configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let asked = &config.recommendations;
        let policy = Policy {
            headroom_per_cent: asked.headroom_per_cent,
            least_saving: asked.least_saving().unwrap_or_else(|| Policy::default().least_saving),
            ..Policy::default()
        };
        // A zone that is none is refused at the start.
        let zone = asked.zone().unwrap_or(TimeZone::UTC);
        Self { policy, zone, source: config.pricing.source }
    }
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Key of one machine, the end of it behind a colon, or its name; all if none.
    pub resource: Option<String>,
    /// As of when; now if none.
    pub at: Option<Timestamp>,
}

/// What is known of all machines alike.
struct Known<'a> {
    store: &'a Store,
    settings: &'a Settings,
    at: Timestamp,
    inventory: Inventory,
    nodes: HashMap<String, Node>,
    versions: HashMap<String, Vec<Was>>,
    not_listed: HashMap<(String, String, String), Vec<Span>>,
    launchers: HashMap<String, String>,
    prices: ListPrices,
    scopes: BTreeMap<Scope, OfScope>,
}

/// What is known of one account's part of one region.
struct OfScope {
    groups_are_known: bool,
    schedulers: Schedulers,
    protection: HashMap<String, KeptProtection>,
    /// What it offers, and when that was read; or why that is not known.
    offered: Result<(Timestamp, Offered), String>,
}

/// Recommends what would save most, first, and says of every other machine why nothing is recommended.
///
/// # Errors
/// If the database does not answer or holds what cannot be read.
pub async fn recommend(store: &Store, settings: &Settings, question: &Question) -> Result<Answer, StoreError> {
    let at = match question.at {
        Some(at) => at,
        None => store.now().await?,
    };
    let mut known = read(store, settings, question, at).await?;
    let listed = std::mem::take(&mut known.inventory.instances).into_iter();
    let instances: Vec<Instance> = listed.filter(|one| may_be_asked_about(one, &known, question)).collect();
    let (mut recommended, mut refused, mut subjects) = (Vec::new(), Vec::new(), BTreeMap::new());
    for instance in &instances {
        let (subject, outcome) = one(&mut known, instance).await?;
        match outcome {
            Ok(recommendation) => recommended.push(recommendation),
            Err(why) => refused.push(Refused::of(&subject, &why)),
        }
        subjects.insert(instance.id.to_string(), subject);
        // Each may have unpacked some hundred rollups.
        tokio::task::yield_now().await;
    }
    refused.extend(without_provider(&known, question));
    Ok(Answer::of(at, &rank::rank(recommended), &subjects, refused))
}

async fn read<'a>(
    store: &'a Store,
    settings: &'a Settings,
    question: &Question,
    at: Timestamp,
) -> Result<Known<'a>, StoreError> {
    let mut resources = Vec::new();
    for kind in then::KINDS {
        resources.extend(store.resources_at(at, Some(Kind::from(kind))).await?);
    }
    let inventory = then::inventory(resources, &store.listings_at(at).await?, at);
    let nodes = store.nodes().await?.into_iter().map(|node| (node.node_id.to_string(), node)).collect();
    let mut known = Known {
        store,
        settings,
        at,
        inventory,
        nodes,
        versions: HashMap::new(),
        not_listed: not_listed(store).await?,
        launchers: store.launchers().await?,
        prices: ListPrices {
            source: settings.source,
            history: store.price_history(settings.source.as_str()).await?,
            read_at: store.price_lists(settings.source.as_str()).await?,
            at,
        },
        scopes: BTreeMap::new(),
    };
    let asked = known.inventory.instances.iter().filter(|instance| may_be_asked_about(instance, &known, question));
    let mut versions: HashMap<String, Vec<Was>> = asked.map(|one| (one.id.to_string(), Vec::new())).collect();
    let from_unix_ms = begin(at).as_millisecond();
    let take = |version: crate::store::MachineVersion| {
        let Some(of) = versions.get_mut(&version.resource) else { return };
        let moment = |unix_ms| Timestamp::from_millisecond(unix_ms).ok();
        let Some(from) = moment(version.from_unix_ms) else { return };
        let until = version.until_unix_ms.and_then(moment);
        let instance = serde_json::from_str::<Instance>(&version.record);
        if let Err(error) = &instance {
            tracing::error!(resource = version.resource, %error, "a version of a machine cannot be read; what it was then is taken for not known");
        }
        of.push(Was::of(from, until, instance.ok()));
    };
    store.each_machine_version(from_unix_ms, take).await?;
    known.versions = versions;
    Ok(known)
}

/// The first hour that is read.
fn begin(at: Timestamp) -> Timestamp {
    at.checked_sub(LOOKBACK).unwrap_or(Timestamp::MIN)
}

/// When the machines of each place could not be listed.
async fn not_listed(store: &Store) -> Result<HashMap<(String, String, String), Vec<Span>>, StoreError> {
    let moment = |unix_ms: i64| Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX);
    let spans = |gaps: Vec<(i64, i64)>| {
        gaps.into_iter().map(|(from, to)| Span { from: moment(from), to: moment(to) }).collect()
    };
    Ok(store.machines_not_listed().await?.into_iter().map(|(place, gaps)| (place, spans(gaps))).collect())
}

fn may_be_asked_about(instance: &Instance, known: &Known<'_>, question: &Question) -> bool {
    let is_gone = matches!(instance.state, InstanceState::Terminated | InstanceState::ShuttingDown);
    !is_gone && is_named(&instance.id.to_string(), name(instance, known).as_deref(), question)
}

fn is_named(key: &str, name: Option<&str>, question: &Question) -> bool {
    question
        .resource
        .as_ref()
        .is_none_or(|wanted| key == wanted || key.ends_with(&format!(":{wanted}")) || name == Some(wanted.as_str()))
}

fn name(instance: &Instance, known: &Known<'_>) -> Option<String> {
    let hostname = || known.nodes.get(&instance.id.to_string()).map(|node| node.hostname.clone());
    instance.name.clone().or_else(hostname).filter(|name| !name.is_empty())
}

async fn one(
    known: &mut Known<'_>,
    instance: &Instance,
) -> Result<(Subject, Result<Recommendation, NotRecommended>), StoreError> {
    let key = instance.id.to_string();
    let owner = model::machine::owner(&instance.tags).or_else(|| known.launchers.get(&key).cloned());
    let mut subject = Subject { resource: key.clone(), name: name(instance, known), owner, catalogue_read_at: None };
    if instance.id.provider != Provider::Aws {
        return Ok((subject, Err(Blocker::ProviderNotKnown { provider: "Google Cloud".to_owned() }.into())));
    }
    let record = record(known, instance).await?;
    let demand = Demand::of(&record);
    let scope = Scope {
        provider: instance.id.provider,
        account: instance.id.account.clone(),
        region: instance.id.location.clone(),
    };
    if !known.scopes.contains_key(&scope) {
        let read = of_scope(known, &scope).await?;
        known.scopes.insert(scope.clone(), read);
    }
    let Some(of_scope) = known.scopes.get(&scope) else {
        return Ok((subject, Err(unknown("what is known of its region").into())));
    };
    let machine = facts(known, of_scope, instance);
    let catalogue = match &of_scope.offered {
        Ok((read_at, offered)) => {
            subject.catalogue_read_at = Some(*read_at);
            catalogue::of(instance, offered, &known.prices)
        }
        Err(_) => nothing_offered(instance),
    };
    let sized = SizedMachine {
        resource: &instance.id,
        machine: &machine,
        interfaces: u32::try_from(instance.network_interfaces.len()).ok().filter(|number| *number > 0),
        record: &record,
        demand: &demand,
        catalogue: &catalogue,
    };
    let outcome = rightsize::recommend(&sized, &known.settings.policy);
    Ok((subject, outcome_of(outcome, known.nodes.get(&key), of_scope.offered.as_ref().err())))
}

fn unknown(fact: &str) -> Blocker {
    Blocker::FactUnknown { fact: fact.to_owned() }
}

/// What an agent told of which nobody knows whose it is counts for nothing, and of a catalogue that nobody read it is not said that it lacks a type.
fn outcome_of(
    outcome: Result<Recommendation, NotRecommended>,
    node: Option<&Node>,
    not_offered: Option<&String>,
) -> Result<Recommendation, NotRecommended> {
    let disputed = node.and_then(|node| node.disputed.as_ref()).map(|_| unknown("who speaks for its node"));
    let mut why = match (outcome, disputed) {
        (Ok(recommendation), None) => return Ok(recommendation),
        (Ok(_), Some(disputed)) => return Err(disputed.into()),
        (Err(mut why), disputed) => {
            why.blockers.extend(disputed);
            why
        }
    };
    if let Some(because) = not_offered {
        why.blockers.retain(|blocker| !matches!(blocker, Blocker::NotOffered { .. }));
        why.blockers.push(unknown(&format!("what its zone offers ({because})")));
    }
    Err(why)
}

fn nothing_offered(instance: &Instance) -> Catalogue {
    let zone = instance.availability_zone.clone().unwrap_or_default();
    Catalogue { region: instance.id.location.clone(), zone, offers: Vec::new() }
}

async fn of_scope(known: &Known<'_>, scope: &Scope) -> Result<OfScope, StoreError> {
    let (provider, account, region) = (scope.provider, &scope.account, &scope.region);
    let offered = catalogue::known(known.store.catalogue(scope).await, known.at)?;
    Ok(OfScope {
        groups_are_known: known.inventory.groups_are_known(provider, account, region),
        schedulers: known.inventory.schedulers(provider, account, region),
        protection: known.store.protection(scope).await?,
        offered,
    })
}

fn facts(known: &Known<'_>, of: &OfScope, instance: &Instance) -> Machine {
    let is_good = |read_at: Timestamp| known.at.duration_since(read_at) <= PROTECTION_GOOD_FOR;
    let kept = of.protection.get(&instance.id.id);
    let protection = match kept.map(|kept| kept.answer) {
        Some(Some((read_at, read))) if is_good(read_at) => Protection::from(read),
        Some(None) => Protection::NotYet,
        _ => Protection::Unknown,
    };
    let facts = instance.stop_facts(of.groups_are_known, &of.schedulers, protection);
    facts.unwrap_or_else(|| Machine::NotKnown(instance.id.provider.as_str().to_owned()))
}

/// All hours since the machine has had its type, and since its agent and the sweeper have told as much as they do.
async fn record(known: &Known<'_>, instance: &Instance) -> Result<Record, StoreError> {
    let key = instance.id.to_string();
    let versions = known.versions.get(&key).map_or(&[][..], Vec::as_slice);
    let place = (instance.id.provider.as_str().to_owned(), instance.id.account.clone(), instance.id.location.clone());
    let not_listed = known.not_listed.get(&place).map_or(&[][..], Vec::as_slice);
    let stopped = observed::stopped(versions, not_listed, known.at);
    let mut record = Record { earlier: Vec::new(), hours: Vec::new(), stopped, zone: known.settings.zone.clone() };
    let (Some(since), true) = (observed::typed_since(versions, known.at), known.nodes.contains_key(&key)) else {
        return Ok(record);
    };
    let from = since.max(begin(known.at));
    let mut told = Vec::new();
    let hours = known.store.packed_summaries(std::slice::from_ref(&key), from, known.at).await?;
    for ((_, start_unix_ms), packed) in hours {
        let Ok(begin) = Timestamp::from_millisecond(start_unix_ms) else { continue };
        match packed.unpack() {
            Ok(summary) => told.push((Detail::of(&summary.node), observed::hour(begin, &summary))),
            Err(error) => {
                tracing::error!(node = key, %begin, %error, "a rollup cannot be read; its hour is taken for not measured");
            }
        }
    }
    (record.earlier, record.hours) = observed::by_detail(told);
    Ok(record)
}

/// Machines on premises that somebody asks about by name: no provider sells them.
fn without_provider(known: &Known<'_>, question: &Question) -> Vec<Refused> {
    let is_asked = |node: &&Node| {
        let id = node.node_id.to_string();
        let is_onprem = id.parse::<ResourceKey>().is_ok_and(|key| key.provider == Provider::OnPrem);
        question.resource.is_some() && is_onprem && is_named(&id, Some(&node.hostname), question)
    };
    let refused = known.nodes.values().filter(is_asked).map(|node| {
        let (resource, name) = (node.node_id.to_string(), Some(node.hostname.clone()));
        let subject = Subject { resource, name, owner: None, catalogue_read_at: None };
        Refused::of(&subject, &Blocker::OnPrem.into())
    });
    refused.collect()
}
