//! What a resource of AWS Batch costs: Batch itself bills nothing, the machines do.

use super::Known;
use crate::{
    inventory::{ComputeEnvironment, Inventory, last_part},
    pricing::Cost,
    snapshot::{Coverage, coverage},
};
use jiff::Timestamp;
use model::{HourlyRate, ResourceKey, ResourceKind};
use std::collections::HashMap;

/// What a job, a queue or an environment costs, or why that is not known. `machines` are the prices of machines.
#[must_use]
pub fn cost(
    inventory: &Inventory,
    known: &Known<'_>,
    machines: &HashMap<&ResourceKey, &Cost>,
    id: &ResourceKey,
) -> Cost {
    match id.kind {
        // Batch bills nothing for jobs that wait, and what waits has no machine.
        ResourceKind::BatchJobQueue => Cost::Known { per_hour: HourlyRate::from_micros(0), as_of: None },
        ResourceKind::BatchJob => of_job(known, machines, id),
        _ => of_environment(inventory, machines, id),
    }
}

fn unknown(why: impl Into<String>) -> Cost {
    Cost::Unknown { why: why.into() }
}

/// The price of the machine that a job is placed on, unless other jobs are, too.
fn of_job(known: &Known<'_>, machines: &HashMap<&ResourceKey, &Cost>, id: &ResourceKey) -> Cost {
    match known.machine_of(id) {
        None => unknown("it is placed on no EC2 instance that is known"),
        Some((machine, 1)) => match machines.get(machine) {
            Some(cost) => (*cost).clone(),
            None => unknown(format!("its machine {} is not listed", machine.id)),
        },
        Some((machine, jobs)) => {
            unknown(format!("its machine {} runs {jobs} jobs, and no price is split over them yet", machine.id))
        }
    }
}

/// What the machines that are registered with an environment cost together.
fn of_environment(inventory: &Inventory, machines: &HashMap<&ResourceKey, &Cost>, id: &ResourceKey) -> Cost {
    if coverage(inventory, &ResourceKey { kind: ResourceKind::EcsContainerInstance, ..id.clone() })
        != Coverage::Complete
    {
        return unknown("the machines of its cluster could not be listed");
    }
    let found = inventory.batch_compute_environments.iter().find(|one| one.id == *id);
    let Some(registered) = found.and_then(|found| registered(inventory, found)) else {
        return unknown("which machines it keeps is not known");
    };
    let (mut total, mut oldest) = (None::<i64>, None::<Timestamp>);
    for machine in registered {
        match machine.as_ref().and_then(|key| machines.get(key)) {
            Some(Cost::Known { per_hour, as_of }) => {
                total = Some(total.unwrap_or(0).saturating_add(per_hour.per_hour().micros()));
                oldest = [oldest, *as_of].into_iter().flatten().min();
            }
            Some(Cost::Unknown { why }) => return unknown(format!("the price of one of its machines is not: {why}")),
            None => return unknown("one of its machines is not listed"),
        }
    }
    match total {
        Some(micros) => Cost::Known { per_hour: HourlyRate::from_micros(micros), as_of: oldest },
        None => unknown("no machine is registered with it"),
    }
}

/// The machines that are registered with an environment's cluster, as far as they are listed, each by its key if it says it; none if it has no cluster
/// of ECS.
pub(super) fn registered<'a>(
    inventory: &'a Inventory,
    environment: &'a ComputeEnvironment,
) -> Option<impl Iterator<Item = Option<ResourceKey>> + 'a> {
    let cluster = last_part(environment.ecs_cluster_arn.as_deref()?);
    let ResourceKey { account, location, .. } = &environment.id;
    let its = inventory
        .ecs_container_instances
        .iter()
        .filter(move |one| (&one.id.account, &one.id.location, one.cluster.as_str()) == (account, location, cluster));
    Some(its.map(|one| {
        let id = one.instance_id.clone()?;
        Some(ResourceKey { kind: ResourceKind::Instance, id, ..one.id.clone() })
    }))
}
