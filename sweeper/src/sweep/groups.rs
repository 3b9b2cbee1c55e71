//! Groups that keep machines up, and launch templates, with what became of the machines that they had started.

use super::{Context, SweepError};
use crate::{
    detectors::{Class, FoundOn, says_ended},
    findings::{Finding, Status},
    inventory::Inventory,
    pricing::Cost,
    snapshot::{EndedIdle, Group, Machine, groups},
    store,
    work_unit::WorkUnit,
};
use jiff::{SignedDuration, Timestamp};
use model::Provider;

/// Machines that have ended are counted for so long.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Every group, each launch template of which a machine has ended, and what open findings name.
pub(super) async fn read(
    context: &Context,
    unit: &WorkUnit,
    inventory: &Inventory,
    machines: &[Machine],
    open: &[Finding],
    now: Timestamp,
) -> Result<Vec<Group>, SweepError> {
    // Elsewhere nothing starts machines anew: launch templates are AWS's.
    let is_aws = matches!(unit, WorkUnit::Scope(scope) if scope.provider == Provider::Aws);
    let closed = if is_aws || !inventory.autoscaling_groups.is_empty() {
        let since = now.checked_sub(WEEK).unwrap_or(Timestamp::MIN);
        store::findings::closed_of(context.store.connection(), unit, Class::IdleNode, since).await?
    } else {
        Vec::new()
    };
    let ended: Vec<EndedIdle> = closed.iter().filter_map(ended_idle).collect();
    let named = open.iter().filter(|finding| finding.class.found_on() == FoundOn::Group);
    Ok(groups(inventory, machines, &ended, named.map(|finding| &finding.resource), now))
}

/// A machine that was idle from so soon after its start on has never done anything.
const STARTS_WITHIN: SignedDuration = SignedDuration::from_mins(30);

/// What a closed finding tells of a machine of a group that was idle from its start to its end; none if it tells something else: a group that ends what has done its work does what it is for.
fn ended_idle(finding: &Finding) -> Option<EndedIdle> {
    let Status::Closed { because, .. } = &finding.status else { return None };
    let machine = finding.evidence.machine()?;
    let was_idle_at_once = finding.since.duration_since(machine.launched_at?) <= STARTS_WITHIN;
    if !says_ended(because) || !was_idle_at_once {
        return None;
    }
    Some(EndedIdle {
        group: machine.group.clone()?,
        machine: finding.resource.clone(),
        since: finding.since,
        until: finding.confirmed_until,
        rate: Cost::rate(&finding.cost),
    })
}
