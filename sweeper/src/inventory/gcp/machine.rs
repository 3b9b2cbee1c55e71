//! One machine of Google Cloud, read by itself right before something is done to it; and what has it or rests on it.
//!
//! Needs beside what lists need `compute.instances.get`, `compute.instances.listReferrers`, `compute.routes.list`, `compute.targetPools.list`,
//! `compute.targetInstances.list`, `compute.networkEndpointGroups.list`, `compute.networkEndpointGroups.get` and `compute.zoneOperations.get`.

use std::collections::BTreeSet;

use ::model::{ResourceKey, address::Told, machine};
use google_cloud_compute_v1::model;
use guards::act::Dependents;
use reqwest::Method;
use serde::Deserialize;

use super::{Session, parse, place::Place, plain};
use crate::inventory::{
    Failure, Instance, Protection, Schedulers, Scope, Silent,
    reader::{Api, Refused},
};

const GET: Api = Api::google("compute.instances.get", "compute");
const REFERRERS: Api = Api::google("compute.instances.listReferrers", "compute");
const ROUTES: Api = Api::google("compute.routes.list", "compute");
const POOLS: Api = Api::google("compute.targetPools.list", "compute");
const TARGETS: Api = Api::google("compute.targetInstances.list", "compute");
const ENDPOINT_GROUPS: Api = Api::google("compute.networkEndpointGroups.list", "compute");
const ENDPOINTS: Api = Api::google("compute.networkEndpointGroups.listNetworkEndpoints", "compute");
const OPERATION: Api = Api::google("compute.zoneOperations.get", "compute");

/// A machine as Google describes it at this moment.
#[derive(Clone, Debug)]
pub struct OneMachine {
    /// As lists have it, but for what its type tells.
    pub instance: Instance,
    /// Its own addresses, private and public.
    pub addresses: BTreeSet<String>,
    /// Whether it takes packets that are not for it; none if Google did not say.
    pub forwards: Option<bool>,
    /// Groups of instances that it is a member of, by Google's list of what refers to it.
    pub groups: Told,
}

impl OneMachine {
    /// What the guards look at; none for a machine that Google has not described.
    #[must_use]
    pub fn facts(&self) -> Option<::model::machine::ComputeEngineFacts> {
        let facts = self.instance.stop_facts(true, &Schedulers::not_asked(), Protection::default())?;
        let machine::Machine::ComputeEngine(mut facts) = facts else { return None };
        facts.groups = self.groups.clone();
        Some(*facts)
    }

    /// `/zones/ZONE/instances/NAME`: how others name it, and nothing but it.
    fn path(&self) -> Option<String> {
        Some(format!("/zones/{}/instances/{}", self.instance.id.location, self.instance.name.as_deref()?))
    }
}

fn scope(on: &ResourceKey) -> Scope {
    Scope { provider: on.provider, account: on.account.clone(), region: Scope::EVERYWHERE.to_owned() }
}

/// One machine by its number; none if Google does not know it any more. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn instance(session: &Session, on: &ResourceKey) -> Result<Option<Instance>, Failure> {
    let scope = scope(on);
    let place = Place::new(session, &scope, &Silent);
    let record = record(&place, on).await?;
    record.map(|record| parsed(on, record)).transpose()
}

fn parsed(on: &ResourceKey, record: model::Instance) -> Result<Instance, Failure> {
    let instance = parse::instance(&on.account, &on.location, record).map_err(|why| Refused::malformed(why).why)?;
    // Whatever was asked for: another machine is another one.
    if instance.id == *on { Ok(instance) } else { Err(Refused::malformed("another machine was answered").why) }
}

async fn record(place: &Place<'_>, on: &ResourceKey) -> Result<Option<model::Instance>, Failure> {
    let read = place.pages(GET, |_| {
        let request = place.clients().instances.get().set_project(place.project());
        let request = request.set_zone(on.location.as_str()).set_instance(on.id.as_str());
        async move {
            match request.send().await {
                Ok(record) => Ok((vec![record], None)),
                Err(error) if error.http_status_code() == Some(404) => Ok((Vec::new(), None)),
                Err(error) => Err(Refused::from(error)),
            }
        }
    });
    Ok(read.await?.pop())
}

/// Reads one machine, and which groups have it; none if Google does not know it any more. Two calls, side by side.
///
/// # Errors
/// What could not be read of the machine, and why. What refers to it is *not known* where it could not be read.
pub async fn one_machine(session: &Session, on: &ResourceKey) -> Result<Option<OneMachine>, Failure> {
    let scope = scope(on);
    let place = Place::new(session, &scope, &Silent);
    let (record, groups) = futures::join!(record(&place, on), groups(&place, on));
    let Some(record) = record? else { return Ok(None) };
    let (addresses, forwards) = (addresses(&record), record.can_ip_forward);
    Ok(Some(OneMachine { instance: parsed(on, record)?, addresses, forwards, groups }))
}

async fn groups(place: &Place<'_>, on: &ResourceKey) -> Told {
    let read = place.pages(REFERRERS, |token| {
        let request = place.clients().instances.list_referrers().set_project(place.project());
        let request = request.set_zone(on.location.as_str()).set_instance(on.id.as_str());
        let request = request.set_max_results(500_u32).set_or_clear_page_token(token);
        async move {
            let page = request.send().await?;
            match page.warning {
                Some(warning) if warning.code.as_ref().and_then(|code| code.name()) != Some("NO_RESULTS_ON_PAGE") => {
                    Err(Refused::malformed("the list may not be whole"))
                }
                _ => Ok((page.items, page.next_page_token)),
            }
        }
    });
    match read.await {
        Err(why) => Told::Unknown { why: format!("{}: {why}", REFERRERS.name) },
        Ok(all) => match all.first() {
            None => Told::Nothing,
            Some(one) => {
                let what = one.referrer.as_deref().and_then(|path| path.rsplit('/').next());
                Told::Something { what: what.unwrap_or("without a name").to_owned() }
            }
        },
    }
}

fn addresses(record: &model::Instance) -> BTreeSet<String> {
    let of = |interface: &model::NetworkInterface| {
        let configs = interface.access_configs.iter().chain(&interface.ipv_6_access_configs);
        let public = configs.flat_map(|config| [config.nat_ip.clone(), config.external_ipv_6.clone()]);
        let own = [interface.network_ip.clone(), interface.ipv_6_address.clone()];
        own.into_iter().chain(public).flatten().collect::<Vec<_>>()
    };
    record.network_interfaces.iter().flat_map(of).filter(|address| !address.is_empty()).collect()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Route {
    name: Option<String>,
    next_hop_instance: Option<String>,
    next_hop_ip: Option<String>,
}

/// A target pool, or a target instance.
#[derive(Debug, Deserialize)]
struct Target {
    name: Option<String>,
    instance: Option<String>,
    #[serde(default)]
    instances: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct EndpointGroup {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    network_endpoint: Endpoint,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    instance: Option<String>,
    ip_address: Option<String>,
}

/// What rests on a machine: routes that lead through it, and load balancers that have it as a target, outside groups. It says so of one that forwards packets, too.
pub async fn dependents(session: &Session, machine: &OneMachine) -> Dependents {
    let mut found = BTreeSet::new();
    let unreadable = |why: &str| Dependents::Unreadable { why: why.to_owned() };
    match machine.forwards {
        Some(false) => {}
        Some(true) => drop(found.insert("it forwards packets that are not for it (canIpForward)".to_owned())),
        None => return unreadable("Google did not say whether it forwards packets"),
    }
    let Some(path) = machine.path() else { return unreadable("Google did not say what it is called") };
    let Some((region, _)) = machine.instance.id.location.rsplit_once('-') else {
        return unreadable("its zone is in no region");
    };
    let scope = scope(&machine.instance.id);
    let place = Place::new(session, &scope, &Silent);
    let of = Of { place: &place, machine, path: &path };
    let (pools, targets) =
        (format!("regions/{region}/targetPools"), format!("zones/{}/targetInstances", machine.instance.id.location));
    let (routes, pools, targets, endpoints) = futures::join!(
        of.routes(),
        of.targets(POOLS, &pools, "target pool"),
        of.targets(TARGETS, &targets, "target instance"),
        of.endpoints()
    );
    for (call, read) in [(ROUTES, routes), (POOLS, pools), (TARGETS, targets), (ENDPOINTS, endpoints)] {
        match read {
            Ok(names) => found.extend(names),
            Err(why) => return unreadable(&format!("{}: {why}", call.name)),
        }
    }
    Dependents::Known(found)
}

/// A machine, and how others name it.
struct Of<'a> {
    place: &'a Place<'a>,
    machine: &'a OneMachine,
    path: &'a str,
}

impl Of<'_> {
    fn is_named(&self, url: Option<&String>) -> bool {
        url.is_some_and(|url| url.ends_with(self.path))
    }

    fn has_address(&self, address: Option<&String>) -> bool {
        address.is_some_and(|address| self.machine.addresses.contains(address))
    }

    async fn routes(&self) -> Result<Vec<String>, Failure> {
        let routes: Vec<Route> = plain::list(self.place, ROUTES, &Method::GET, "global/routes").await?;
        let through = routes.into_iter().filter(|route| {
            self.is_named(route.next_hop_instance.as_ref()) || self.has_address(route.next_hop_ip.as_ref())
        });
        Ok(through.map(|route| format!("the route {}", route.name.unwrap_or_default())).collect())
    }

    async fn targets(&self, api: Api, path: &str, what: &str) -> Result<Vec<String>, Failure> {
        let targets: Vec<Target> = plain::list(self.place, api, &Method::GET, path).await?;
        let has = |target: &Target| {
            self.is_named(target.instance.as_ref()) || target.instances.iter().any(|url| self.is_named(Some(url)))
        };
        let found = targets.into_iter().filter(has);
        Ok(found.map(|target| format!("the {what} {}", target.name.unwrap_or_default())).collect())
    }

    /// Endpoints name a machine by its name alone, or by its address.
    async fn endpoints(&self) -> Result<Vec<String>, Failure> {
        let here = format!("zones/{}/networkEndpointGroups", self.machine.instance.id.location);
        let groups: Vec<EndpointGroup> = plain::list(self.place, ENDPOINT_GROUPS, &Method::GET, &here).await?;
        let mut found = Vec::new();
        for EndpointGroup { name } in groups {
            let path = format!("{here}/{name}/listNetworkEndpoints");
            let endpoints: Vec<Listed> = plain::list(self.place, ENDPOINTS, &Method::POST, &path).await?;
            let is_it = |Listed { network_endpoint: one }: &Listed| {
                let named = one
                    .instance
                    .as_ref()
                    .is_some_and(|url| url.rsplit('/').next() == self.machine.instance.name.as_deref());
                named || self.has_address(one.ip_address.as_ref())
            };
            if endpoints.iter().any(is_it) {
                found.push(format!("the network endpoint group {name}"));
            }
        }
        Ok(found)
    }
}

#[derive(Debug, Deserialize)]
struct Operation {
    status: Option<String>,
    error: Option<Errors>,
}

#[derive(Debug, Deserialize)]
struct Errors {
    #[serde(default)]
    errors: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    code: Option<String>,
    message: Option<String>,
}

/// The error that an operation ended with, as its code and in words; none while it goes on, if it went well, or if Google does not know it any more.
///
/// # Errors
/// What could not be read, and why.
pub async fn ended_with(
    session: &Session,
    on: &ResourceKey,
    operation: &str,
) -> Result<Option<(String, String)>, Failure> {
    let scope = scope(on);
    let place = Place::new(session, &scope, &Silent);
    let path = format!("zones/{}/operations/{operation}", on.location);
    let Some(read) = plain::get::<Operation>(&place, OPERATION, &path).await? else { return Ok(None) };
    if read.status.as_deref() != Some("DONE") {
        return Ok(None);
    }
    let fault = read.error.and_then(|error| error.errors.into_iter().next());
    Ok(fault.map(|fault| (fault.code.unwrap_or_default(), fault.message.unwrap_or_default())))
}
