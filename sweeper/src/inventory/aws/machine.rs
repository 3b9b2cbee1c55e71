//! One machine, read by itself right before something is done to it; and what may have a say in that: groups, schedulers, and what rests on it.
//!
//! Needs beside what lists need `ec2:DescribeRouteTables`, `elasticloadbalancing:DescribeTargetGroups`,
//! `elasticloadbalancing:DescribeTargetHealth` and `elasticloadbalancing:DescribeLoadBalancers`.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{self, Filter};
use guards::act::Dependents;
use model::{ResourceKind, machine};

use super::{
    Accounts,
    collect::{List, keep, list},
    jobs, parse,
    place::Place,
    protection, scaling, types as machine_types,
};
use crate::inventory::{
    Failure, FailureKind, Instance, Inventory, Listing, Scope, Silent,
    reader::{Api, Refused},
};

const INSTANCE: Api = Api::ec2("ec2:DescribeInstances");
const ROUTES: Api = Api::ec2("ec2:DescribeRouteTables");
const TARGET_GROUPS: Api = Api::load_balancing("elasticloadbalancing:DescribeTargetGroups");
const TARGETS: Api = Api::load_balancing("elasticloadbalancing:DescribeTargetHealth");
const CLASSIC: Api = Api::load_balancing("elasticloadbalancing:DescribeLoadBalancers");
/// Load balancing tells of so many target groups or classic load balancers at once.
const PAGE: i32 = 400;

/// A machine as EC2 describes it at this moment.
#[derive(Clone, Debug)]
pub struct OneMachine {
    /// As lists have it.
    pub instance: Instance,
    /// What protects it.
    pub protection: machine::Protection,
    /// Its own addresses, private and public.
    pub addresses: BTreeSet<String>,
    /// Its network, if EC2 said which.
    pub vpc: Option<String>,
    /// Whether it takes packets that are not for it; none if EC2 did not say.
    pub forwards: Option<bool>,
}

pub(super) fn place(accounts: &Accounts, scope: &Scope) -> Result<std::sync::Arc<Place>, Failure> {
    accounts.place(scope).ok_or_else(|| Failure {
        kind: FailureKind::Credentials,
        message: format!("account {} is not open here; name a role of it in `aws.accounts`", scope.account),
    })
}

/// One machine, as lists have it but for what its type tells; none if EC2 does not know it any more. One call.
///
/// # Errors
/// What could not be read, and why.
pub async fn instance(accounts: &Accounts, scope: &Scope, id: &str) -> Result<Option<Instance>, Failure> {
    let place = place(accounts, scope)?;
    let record = record(&place, id).await?;
    record.map(|record| parsed(scope, &record)).transpose()
}

fn parsed(scope: &Scope, record: &types::Instance) -> Result<Instance, Failure> {
    parse::instance(&scope.account, &scope.region, record).map_err(|why| Refused::malformed(why).why)
}

async fn record(place: &Place, id: &str) -> Result<Option<types::Instance>, Failure> {
    let records = place.pages(
        INSTANCE,
        |_| (),
        |token| {
            let this = Filter::builder().name("instance-id").values(id).build();
            let request = place.ec2().describe_instances().filters(this).set_next_token(token);
            async move {
                let page = request.send().await?;
                let mut records = Vec::new();
                for reservation in list(page.reservations, "reservations")? {
                    records.extend(list(reservation.instances, "instances in a reservation")?);
                }
                Ok((records, page.next_token))
            }
        },
    );
    let records: Vec<types::Instance> = records.await?;
    Ok(records.into_iter().find(|record| record.instance_id() == Some(id)))
}

/// Reads one machine; none if EC2 does not know it any more. Four calls.
///
/// # Errors
/// What could not be read, and why: half of it is never given.
pub async fn one_machine(accounts: &Accounts, scope: &Scope, id: &str) -> Result<Option<OneMachine>, Failure> {
    let place = place(accounts, scope)?;
    let Some(record) = record(&place, id).await? else { return Ok(None) };
    let instance = parsed(scope, &record)?;
    let mut inventory = Inventory { instances: vec![instance], ..Inventory::default() };
    let list_of = List { place: &place, page_size: accounts.options.page_size, scope, progress: &Silent };
    let (protection, ()) = futures::join!(protection::ask(&place, id), machine_types::add(&list_of, &mut inventory));
    let Some(instance) = inventory.instances.pop() else { return Ok(None) };
    Ok(Some(OneMachine {
        addresses: addresses(&record, &instance),
        vpc: record.vpc_id().map(str::to_owned),
        forwards: record.source_dest_check().map(|is_checked| !is_checked),
        protection: protection?.into(),
        instance,
    }))
}

fn addresses(record: &types::Instance, instance: &Instance) -> BTreeSet<String> {
    let of_interface = |interface: &types::InstanceNetworkInterface| {
        let v4 = interface.private_ip_addresses().iter().filter_map(|one| one.private_ip_address());
        let v6 = interface.ipv6_addresses().iter().filter_map(|one| one.ipv6_address());
        v4.chain(v6).map(str::to_owned).collect::<Vec<_>>()
    };
    let own = record.private_ip_address().map(str::to_owned);
    let public = instance.public_ipv4.iter().map(|one| one.address.clone());
    let interfaces = record.network_interfaces().iter().flat_map(of_interface);
    own.into_iter().chain(public).chain(interfaces).collect()
}

/// What may have a machine of this scope: its Auto Scaling groups, and what ECS and AWS Batch list. What could not be read is in the listings.
///
/// # Errors
/// If the account is not open here.
pub async fn owners(accounts: &Accounts, scope: &Scope) -> Result<Inventory, Failure> {
    let place = place(accounts, scope)?;
    let list_of = List { place: &place, page_size: accounts.options.page_size, scope, progress: &Silent };
    let (groups, mut inventory) = futures::join!(scaling::groups(&list_of), jobs::read(&list_of));
    let outcome = keep(scaling::GROUPS, groups, &mut inventory.autoscaling_groups, |it| &it.id);
    inventory.listings.push(Listing::of(scope, ResourceKind::AutoScalingGroup, outcome));
    Ok(inventory)
}

/// What rests on a machine: routes that lead through it, and load balancers that have it as a target. It says so of one that forwards packets, too.
pub async fn dependents(accounts: &Accounts, scope: &Scope, machine: &OneMachine) -> Dependents {
    let unreadable = |call: Api, why: &Failure| Dependents::Unreadable { why: format!("{}: {why}", call.name) };
    let place = match place(accounts, scope) {
        Ok(place) => place,
        Err(why) => return unreadable(ROUTES, &why),
    };
    let mut found = BTreeSet::new();
    match machine.forwards {
        Some(false) => {}
        Some(true) => drop(
            found.insert("it forwards packets that are not for it (its source/destination check is off)".to_owned()),
        ),
        None => return Dependents::Unreadable { why: "EC2 did not say whether it forwards packets".to_owned() },
    }
    let (routes, targets, classic) =
        futures::join!(routes(&place, machine), targets(&place, machine), classic(&place, machine));
    for (call, read) in [(ROUTES, routes), (TARGETS, targets), (CLASSIC, classic)] {
        match read {
            Ok(names) => found.extend(names),
            Err(why) => return unreadable(call, &why),
        }
    }
    Dependents::Known(found)
}

async fn routes(place: &Place, machine: &OneMachine) -> Result<Vec<String>, Failure> {
    let tables = place.pages(
        ROUTES,
        |_| (),
        |token| {
            let of_vpc = machine.vpc.as_ref().map(|vpc| vec![Filter::builder().name("vpc-id").values(vpc).build()]);
            let request = place.ec2().describe_route_tables().set_filters(of_vpc).set_next_token(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.route_tables, "route tables")?, page.next_token))
            }
        },
    );
    let instance = &machine.instance;
    let leads_here = |route: &types::Route| {
        route.instance_id() == Some(instance.id.id.as_str())
            || route.network_interface_id().is_some_and(|id| instance.network_interfaces.iter().any(|own| own == id))
    };
    let tables: Vec<types::RouteTable> = tables.await?;
    let through = tables.iter().filter(|table| table.routes().iter().any(leads_here));
    Ok(through.map(|table| format!("a route of {}", table.route_table_id().unwrap_or("a route table"))).collect())
}

/// Target groups name a machine by its id or by one of its addresses.
async fn targets(place: &Place, machine: &OneMachine) -> Result<Vec<String>, Failure> {
    let groups = place.pages(
        TARGET_GROUPS,
        |_| (),
        |token| {
            let request = place.load_balancing().describe_target_groups().page_size(PAGE).set_marker(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.target_groups, "target groups")?, page.next_marker))
            }
        },
    );
    let mut found = Vec::new();
    for group in groups.await? {
        let Some(arn) = group.target_group_arn() else {
            return Err(Refused::malformed("a target group has no ARN").why);
        };
        let targets = place.pages(
            TARGETS,
            |_| (),
            |_| {
                let request = place.load_balancing().describe_target_health().target_group_arn(arn);
                async move { Ok((list(request.send().await?.target_health_descriptions, "targets")?, None)) }
            },
        );
        let is_here = |id: &str| id == machine.instance.id.id || machine.addresses.contains(id);
        let has = targets.await?.iter().any(|one| one.target().and_then(|target| target.id()).is_some_and(is_here));
        if has {
            found.push(format!("the target group {}", group.target_group_name().unwrap_or(arn)));
        }
    }
    Ok(found)
}

async fn classic(place: &Place, machine: &OneMachine) -> Result<Vec<String>, Failure> {
    let balancers = place.pages(
        CLASSIC,
        |_| (),
        |token| {
            let request = place.classic_load_balancing().describe_load_balancers().page_size(PAGE).set_marker(token);
            async move {
                let page = request.send().await?;
                Ok((list(page.load_balancer_descriptions, "load balancers")?, page.next_marker))
            }
        },
    );
    let has = |one: &aws_sdk_elasticloadbalancing::types::LoadBalancerDescription| {
        one.instances().iter().any(|target| target.instance_id() == Some(machine.instance.id.id.as_str()))
    };
    let found = balancers.await?.into_iter().filter(has);
    Ok(found.map(|one| format!("the load balancer {}", one.load_balancer_name().unwrap_or("without a name"))).collect())
}
