//! Whether each action that sweeps and actions read by is allowed, found out by one small call of each: for `sweeper doctor`.
//!
//! What cannot be told by a call that would fail anyway (a target group's health where there is none) is not tried, and said so.

use aws_sdk_batch::types::JobStatus;
use aws_sdk_cloudtrail::types::{LookupAttribute, LookupAttributeKey};
use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricStat};
use aws_sdk_ec2::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    primitives::DateTime,
    types::{AddressAttributeName, InstanceAttributeName},
};
use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use super::{Accounts, failure, place::Place, trail};
use crate::inventory::{Failure, FailureKind, Scope};

/// Named where something must be named that is not there. Its refusal comes after the right was looked at.
const NOTHING: &str = "cloud-sweeper-doctor";
/// The least that EC2's lists take.
const FEW: i32 = 5;

/// Whether an action is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// A call was answered.
    Yes,
    /// AWS refuses it.
    No(Failure),
    /// It failed for another reason.
    NotKnown(Failure),
    /// Nothing is there to try it on.
    NotTried(&'static str),
}

/// An action, as a policy names it, and whether it is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// For example `ec2:DescribeInstances`.
    pub action: &'static str,
    /// Whether it is.
    pub allowed: Allowed,
}

/// What is asked for besides the lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct Besides {
    /// `aws.cloudwatch`.
    pub cloudwatch: bool,
    /// `aws.cloudtrail`.
    pub cloudtrail: bool,
    /// What is read of a machine before it is stopped.
    pub acting: bool,
    /// What is read of an Auto Scaling group before one of its machines is ended.
    pub ending: bool,
}

/// Tries each action in one region of one account, one after the other: some twenty calls, of which each lists a few things at most. None if the account is not open here.
pub async fn permissions(accounts: &Accounts, scope: &Scope, besides: Besides) -> Option<Vec<Permission>> {
    let place = accounts.place(scope)?;
    let mut all = ec2(&place).await;
    if accounts.looks_for_regions(&scope.account) {
        all.push(judged("ec2:DescribeRegions", place.ec2().describe_regions().send().await));
    }
    all.extend(batch(&place).await);
    all.extend(ecs(&place).await);
    if besides.cloudwatch {
        all.push(metrics(&place).await);
    }
    if besides.cloudtrail {
        all.push(launches(&place).await);
    }
    if besides.acting {
        all.extend(before_acting(&place).await);
    }
    if besides.acting && besides.ending {
        all.push(before_ending(&place).await);
    }
    Some(all)
}

/// Some machines of a region, by their ids.
///
/// # Errors
/// If they cannot be listed.
pub async fn some_machines(accounts: &Accounts, scope: &Scope, most: usize) -> Result<Vec<String>, Failure> {
    let Some(place) = accounts.place(scope) else { return Ok(Vec::new()) };
    machines(&place, most).await.map_err(|error| failure::of(&error))
}

async fn machines(
    place: &Place,
    most: usize,
) -> Result<Vec<String>, SdkError<aws_sdk_ec2::operation::describe_instances::DescribeInstancesError, HttpResponse>> {
    let page = i32::try_from(most).unwrap_or(FEW).max(FEW);
    let answer = place.ec2().describe_instances().max_results(page).send().await?;
    let records = answer.reservations.unwrap_or_default().into_iter().flat_map(|one| one.instances.unwrap_or_default());
    Ok(records.filter_map(|record| record.instance_id).take(most).collect())
}

async fn ec2(place: &Place) -> Vec<Permission> {
    let client = place.ec2();
    let listed = machines(place, 1).await;
    let one = listed.as_ref().ok().and_then(|ids| ids.first().cloned());
    let attribute = match one {
        None => Permission {
            action: "ec2:DescribeInstanceAttribute",
            allowed: Allowed::NotTried("there is no machine in this region"),
        },
        Some(id) => {
            let request = client.describe_instance_attribute().instance_id(id);
            judged(
                "ec2:DescribeInstanceAttribute",
                request.attribute(InstanceAttributeName::DisableApiStop).send().await,
            )
        }
    };
    vec![
        judged("ec2:DescribeInstances", listed),
        attribute,
        judged("ec2:DescribeInstanceTypes", client.describe_instance_types().max_results(FEW).send().await),
        judged(
            "ec2:DescribeInstanceTypeOfferings",
            client.describe_instance_type_offerings().max_results(FEW).send().await,
        ),
        judged("ec2:DescribeVolumes", client.describe_volumes().max_results(FEW).send().await),
        judged("ec2:DescribeAddresses", client.describe_addresses().send().await),
        judged("ec2:DescribeSnapshots", client.describe_snapshots().owner_ids("self").max_results(FEW).send().await),
        judged("ec2:DescribeSpotPriceHistory", client.describe_spot_price_history().max_results(FEW).send().await),
        judged("ec2:DescribeImages", client.describe_images().owners("self").max_results(FEW).send().await),
        judged(
            "autoscaling:DescribeAutoScalingGroups",
            place.autoscaling().describe_auto_scaling_groups().max_records(1).send().await,
        ),
    ]
}

async fn batch(place: &Place) -> Vec<Permission> {
    let client = place.batch();
    vec![
        judged("batch:DescribeComputeEnvironments", client.describe_compute_environments().max_results(1).send().await),
        judged("batch:DescribeJobQueues", client.describe_job_queues().max_results(1).send().await),
        judged(
            "batch:ListJobs",
            client.list_jobs().job_queue(NOTHING).job_status(JobStatus::Running).max_results(1).send().await,
        ),
        judged("batch:DescribeJobs", client.describe_jobs().jobs(NOTHING).send().await),
    ]
}

async fn ecs(place: &Place) -> Vec<Permission> {
    let client = place.ecs();
    let task = "00000000000000000000000000000000";
    vec![
        judged("ecs:ListClusters", client.list_clusters().max_results(1).send().await),
        judged(
            "ecs:ListContainerInstances",
            client.list_container_instances().cluster(NOTHING).max_results(1).send().await,
        ),
        judged(
            "ecs:DescribeContainerInstances",
            client.describe_container_instances().cluster(NOTHING).container_instances(task).send().await,
        ),
        judged("ecs:DescribeTasks", client.describe_tasks().cluster(NOTHING).tasks(task).send().await),
    ]
}

async fn metrics(place: &Place) -> Permission {
    const ACTION: &str = "cloudwatch:GetMetricData";
    let metric = Metric::builder().namespace("AWS/EC2").metric_name("CPUUtilization");
    let metric =
        metric.dimensions(Dimension::builder().name("InstanceId").value("i-00000000000000000").build()).build();
    let query = MetricDataQuery::builder()
        .id("doctor")
        .metric_stat(MetricStat::builder().metric(metric).period(300).stat("Maximum").build())
        .build();
    let now = SystemTime::now();
    let since = now.checked_sub(Duration::from_secs(600)).unwrap_or(now);
    let request = place.cloudwatch().get_metric_data().metric_data_queries(query);
    judged(ACTION, request.start_time(DateTime::from(since)).end_time(DateTime::from(now)).send().await)
}

async fn launches(place: &Place) -> Permission {
    let name = LookupAttribute::builder().attribute_key(LookupAttributeKey::EventName).attribute_value("RunInstances");
    match name.build() {
        Ok(name) => {
            let request = place.cloudtrail().lookup_events().lookup_attributes(name).max_results(1);
            judged(trail::LOOKUP, request.send().await)
        }
        Err(error) => {
            let why = Failure { kind: FailureKind::Provider, message: error.to_string() };
            Permission { action: trail::LOOKUP, allowed: Allowed::NotKnown(why) }
        }
    }
}

async fn before_acting(place: &Place) -> Vec<Permission> {
    const HEALTH: &str = "elasticloadbalancing:DescribeTargetHealth";
    let groups = place.load_balancing().describe_target_groups().page_size(1).send().await;
    let one = groups.as_ref().ok().and_then(|page| page.target_groups().first()?.target_group_arn().map(str::to_owned));
    let health = match one {
        None => Permission { action: HEALTH, allowed: Allowed::NotTried("there is no target group in this region") },
        Some(arn) => judged(HEALTH, place.load_balancing().describe_target_health().target_group_arn(arn).send().await),
    };
    let attributes = place.ec2().describe_addresses_attribute().attribute(AddressAttributeName::DomainName);
    let attributes = attributes.max_results(FEW);
    vec![
        judged("ec2:DescribeAddressesAttribute", attributes.send().await),
        judged("ec2:DescribeAddressTransfers", place.ec2().describe_address_transfers().max_results(FEW).send().await),
        judged("ec2:DescribeRouteTables", place.ec2().describe_route_tables().max_results(FEW).send().await),
        judged("elasticloadbalancing:DescribeTargetGroups", groups),
        health,
        judged(
            "elasticloadbalancing:DescribeLoadBalancers",
            place.classic_load_balancing().describe_load_balancers().page_size(1).send().await,
        ),
    ]
}

async fn before_ending(place: &Place) -> Permission {
    const ACTION: &str = "autoscaling:DescribeInstanceRefreshes";
    let client = place.autoscaling();
    let listed = client.describe_auto_scaling_groups().max_records(1).send().await;
    let one = listed.ok().and_then(|page| page.auto_scaling_groups().first()?.auto_scaling_group_name.clone());
    let Some(name) = one else {
        return Permission {
            action: ACTION,
            allowed: Allowed::NotTried("there is no Auto Scaling group in this region"),
        };
    };
    let request = client.describe_instance_refreshes().auto_scaling_group_name(name).max_records(1);
    judged(ACTION, request.send().await)
}

/// Codes by which a service says that what was named is not there: it looked, so that whoever asked may ask.
const NOT_THERE: [&str; 2] = ["ClusterNotFoundException", "ClientException"];

fn judged<T, E>(action: &'static str, answer: Result<T, SdkError<E, HttpResponse>>) -> Permission
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let Err(error) = answer else { return Permission { action, allowed: Allowed::Yes } };
    let code = match &error {
        SdkError::ServiceError(service) => service.err().code(),
        _ => None,
    };
    if code.is_some_and(|code| NOT_THERE.contains(&code)) {
        return Permission { action, allowed: Allowed::Yes };
    }
    let why = failure::of(&error);
    let allowed = match why.kind {
        FailureKind::Denied | FailureKind::Credentials => Allowed::No(why),
        _ => Allowed::NotKnown(why),
    };
    Permission { action, allowed }
}
