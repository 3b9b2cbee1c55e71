//! The plan itself: steps, reversal, what is lost, what keeps billing, what is saved.

use std::collections::BTreeMap;

use model::{HourlyRate, Usd};
use serde_json::{Value, json};

use super::{Ec2Facts, InstanceStore, Price, StopInput, VALID_FOR, refuse::Stoppable};
use crate::proposal::{Call, Charge, Condition, Loss, Plan, Saving, Step};

/// EC2 may take several minutes to stop a machine whose system is slow to shut down.
const STOP_WITHIN_SECONDS: u32 = 900;
const START_WITHIN_SECONDS: u32 = 600;

/// None if the expiry does not fit a timestamp.
pub(super) fn of(input: &StopInput, stoppable: &Stoppable<'_>) -> Option<Plan> {
    let facts = stoppable.facts;
    let called = facts.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    Some(Plan {
        finding: input.finding.clone(),
        resource: input.resource.clone(),
        title: format!(
            "Stop the idle {} instance {}{called} in {}",
            stoppable.instance_type, facts.instance_id, facts.region
        ),
        steps: vec![
            Step::Confirm { conditions: conditions(stoppable) },
            call(facts, "StopInstances", true),
            call(facts, "StopInstances", false),
            Step::Await { state: "stopped".to_owned(), within_seconds: STOP_WITHIN_SECONDS },
        ],
        reversal: vec![
            call(facts, "StartInstances", false),
            Step::Await { state: "running".to_owned(), within_seconds: START_WITHIN_SECONDS },
        ],
        lost: lost(stoppable),
        keeps_billing: keeps_billing(facts),
        net_saving: saving(input, facts),
        expires_at: input.now.checked_add(VALID_FOR).ok()?,
    })
}

fn conditions(stoppable: &Stoppable<'_>) -> Vec<Condition> {
    let mut conditions = vec![
        Condition::TagsStillPermit,
        Condition::StateIs { state: "running".to_owned() },
        Condition::LaunchedAtIs { at: stoppable.launched_at },
        Condition::InstanceTypeIs { instance_type: stoppable.instance_type.to_owned() },
        Condition::NotProtected,
    ];
    if stoppable.facts.instance_store == InstanceStore::Unknown {
        conditions.push(Condition::NoInstanceStoreWrites);
    }
    conditions.push(Condition::StillIdle);
    conditions
}

/// Neither `Force` nor `SkipOsShutdown` is ever among the parameters.
fn call(facts: &Ec2Facts, action: &str, dry_run: bool) -> Step {
    let mut parameters = BTreeMap::from([("InstanceIds".to_owned(), json!([facts.instance_id]))]);
    if dry_run {
        parameters.insert("DryRun".to_owned(), Value::Bool(true));
    }
    Step::Call(Call {
        service: "ec2".to_owned(),
        action: action.to_owned(),
        account: facts.account.clone(),
        region: facts.region.clone(),
        parameters,
        expect: if dry_run { "DryRunOperation" } else { "ok" }.to_owned(),
    })
}

fn lost(stoppable: &Stoppable<'_>) -> Vec<Loss> {
    let facts = stoppable.facts;
    let mut lost = vec![Loss::Memory];
    lost.extend(
        facts
            .public_ipv4
            .iter()
            .filter(|ip| ip.elastic != Some(true))
            .map(|ip| Loss::PublicIpv4 { address: ip.address.clone(), may_be_elastic: ip.elastic.is_none() }),
    );
    if facts.instance_store == InstanceStore::Unknown {
        lost.push(Loss::InstanceStore);
    }
    lost.push(Loss::Capacity { instance_type: stoppable.instance_type.to_owned() });
    lost
}

fn keeps_billing(facts: &Ec2Facts) -> Vec<Charge> {
    let volumes = facts.volumes.iter().map(|id| Charge::Volume { id: id.clone() });
    let addresses = facts
        .public_ipv4
        .iter()
        .filter(|ip| ip.elastic != Some(false))
        .map(|ip| Charge::ElasticIpv4 { address: ip.address.clone(), may_be_released: ip.elastic.is_none() });
    volumes.chain(addresses).chain([Charge::CommitmentsUnknown]).collect()
}

/// What keeps billing is billed before and after, so it is no part of the difference. The machine's own rate is net of it, and so is that of the
/// addresses that it gives back.
fn saving(input: &StopInput, facts: &Ec2Facts) -> Saving {
    let rate = match &input.price {
        Price::OnDemand(rate) => *rate,
        Price::Unknown(why) => return Saving::Unknown { why: why.clone() },
    };
    let lent = facts.public_ipv4.iter().filter(|ip| ip.elastic == Some(false)).count();
    let (per_hour, of, besides) = match &input.lent_ipv4 {
        Some(Price::OnDemand(each)) if lent > 0 => {
            let addresses = i64::try_from(lent).unwrap_or(i64::MAX).saturating_mul(each.per_hour().micros());
            let sum = rate.per_hour().saturating_add(Usd::from_micros(addresses));
            let of = if lent == 1 { "and of its public address" } else { "and of its public addresses" };
            (HourlyRate::new(sum), of, "")
        }
        Some(Price::Unknown(_)) if lent > 0 => {
            (rate, "alone", "what the public addresses cost that it gives back is not known, and saved besides; ")
        }
        _ => (rate, "alone", ""),
    };
    Saving::Known {
        per_hour,
        per_month: per_hour.per_month(),
        basis: format!(
            "the on-demand list price of the instance {of}, over 730 hours a month; {besides}volumes and elastic addresses \
             are billed as before; hours that a reservation or savings plan covers would save no cash, and whether one does \
             has not been read"
        ),
    }
}
