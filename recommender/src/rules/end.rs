//! *End this idle member of an Auto Scaling group, and have the group keep up one machine fewer.*
//!
//! Planned if and only if the verdict is idle, the machine is a running on-demand EC2 instance whose facts are all known, an Auto Scaling group lists it in service, and every guard of members lets it
//! through: nothing larger keeps the group, it may be made smaller, and nothing but this machine would end. Nothing undoes it, and the plan says what goes with the machine. Who made it idle may be
//! gone for good, so that what the group starts later is another machine.

use guards::Refusal;
use jiff::Timestamp;
use model::{
    HourlyRate, ResourceKey, Verdict,
    group::GroupFacts,
    machine::{Ec2Facts, InstanceStore, Machine},
    plan::{Action, Charge, Condition, Loss, Plan, PlanContent, PlanError, Saving},
};
use serde::{Deserialize, Serialize};

use super::{Price, VALID_FOR, stop::NoPlan};

/// Everything that the rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndInput {
    /// The finding that the plan would end.
    pub finding: String,
    /// The number of the finding's record that the plan is made with.
    pub record: u32,
    /// The machine.
    pub resource: ResourceKey,
    /// What the verdict engine found.
    pub verdict: Verdict,
    /// What EC2 says of the machine.
    pub machine: Machine,
    /// What Auto Scaling's list says of its group.
    pub group: GroupFacts,
    /// Its volumes.
    pub volumes: Vec<Attached>,
    /// What the machine costs.
    pub price: Price,
    /// The caller's clock; the plan may be approved for [`VALID_FOR`].
    pub now: Timestamp,
}

/// A volume of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// `vol-…`
    pub id: String,
    /// Whether it goes with its machine; none if EC2 did not say.
    pub goes_with_it: Option<bool>,
}

/// What a plan is made from once nothing speaks against it.
struct Endable<'a> {
    facts: &'a Ec2Facts,
    instance_type: &'a str,
    launched_at: Timestamp,
}

/// Plans to end an idle member of a group, or says why not.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn plan(input: &EndInput) -> Result<Plan, NoPlan> {
    let content = content(input, &unless_endable(input)?);
    let valid_until = input.now.checked_add(VALID_FOR).map_err(|_out_of_range| NoPlan::ExpiryOutOfRange)?;
    Plan::seal(content, valid_until).map_err(|error: PlanError| NoPlan::CannotSeal { why: error.to_string() })
}

fn unless_endable(input: &EndInput) -> Result<Endable<'_>, NoPlan> {
    if input.verdict != Verdict::Idle {
        return Err(NoPlan::NotIdle { verdict: input.verdict });
    }
    let facts = match &input.machine {
        Machine::OnPrem => return Err(NoPlan::OnPrem),
        Machine::NotKnown(provider) => return Err(NoPlan::ProviderNotKnown { provider: provider.clone() }),
        // No machine of a group is ended there.
        Machine::ComputeEngine(_) => {
            return Err(NoPlan::ProviderNotKnown { provider: "Google Cloud".to_owned() });
        }
        Machine::Ec2(facts) => facts.as_ref(),
    };
    guards::may_end(facts, &input.group).map_err(|by| NoPlan::Guarded { by })?;
    let missing = |fact: &str| NoPlan::Guarded { by: Refusal::FactUnknown { fact: fact.to_owned() } };
    Ok(Endable {
        facts,
        instance_type: facts.instance_type.as_deref().ok_or_else(|| missing("instance type"))?,
        launched_at: facts.launched_at.ok_or_else(|| missing("launch time"))?,
    })
}

fn content(input: &EndInput, endable: &Endable<'_>) -> PlanContent {
    let (facts, group) = (endable.facts, &input.group.name);
    let called = facts.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    PlanContent {
        finding: input.finding.clone(),
        record: input.record,
        resource: input.resource.clone(),
        title: format!(
            "End the idle {} instance {}{called} of the Auto Scaling group {group} in {} for good, and have the group keep up one machine fewer",
            endable.instance_type, facts.instance_id, facts.region
        ),
        conditions: vec![
            Condition::TagsPermit,
            Condition::StateIs { state: "running".to_owned() },
            Condition::LaunchedAtIs { at: endable.launched_at },
            Condition::InstanceTypeIs { instance_type: endable.instance_type.to_owned() },
            Condition::NotProtected,
            Condition::MemberOf { group: group.clone() },
            Condition::GroupCanShrink,
            Condition::StillIdle,
        ],
        actions: vec![Action::EndMember],
        reversal: Vec::new(),
        lost: lost(input, facts),
        keeps_billing: keeps_billing(input, facts),
        net_saving: saving(&input.price),
    }
}

/// Where nobody said whether it goes, it may: what may be lost is said.
fn lost(input: &EndInput, facts: &Ec2Facts) -> Vec<Loss> {
    let mut lost = vec![Loss::Machine { id: facts.instance_id.clone() }, Loss::Memory];
    let going = input.volumes.iter().filter(|volume| volume.goes_with_it != Some(false));
    lost.extend(
        going.map(|volume| Loss::VolumeOfMachine { id: volume.id.clone(), may_stay: volume.goes_with_it.is_none() }),
    );
    if facts.instance_store != InstanceStore::Absent {
        lost.push(Loss::InstanceStore);
    }
    let lent = facts.public_ipv4.iter().filter(|ip| ip.elastic != Some(true));
    lost.extend(lent.map(|ip| Loss::PublicIpv4 { address: ip.address.clone(), may_be_elastic: ip.elastic.is_none() }));
    lost
}

/// Where nobody said whether it goes, it may stay as well.
fn keeps_billing(input: &EndInput, facts: &Ec2Facts) -> Vec<Charge> {
    let staying = input.volumes.iter().filter(|volume| volume.goes_with_it != Some(true));
    let volumes = staying.map(|volume| Charge::Volume { id: volume.id.clone() });
    let kept = facts.public_ipv4.iter().filter(|ip| ip.elastic != Some(false));
    let addresses =
        kept.map(|ip| Charge::ElasticIpv4 { address: ip.address.clone(), may_be_released: ip.elastic.is_none() });
    volumes.chain(addresses).chain([Charge::CommitmentsUnknown]).collect()
}

/// What is saved at the least: for as long as the group starts no other.
fn saving(price: &Price) -> Saving {
    let saved = |per_hour: HourlyRate| {
        Saving::Known {
        per_hour,
        per_month: per_hour.per_month(),
        basis: "at the least: the on-demand list price of the instance alone, over 730 hours a month, for as long as its group keeps up no more machines than then; volumes that go with it, and \
                addresses that it gives back, are saved besides; hours that a reservation or savings plan covers would save no cash, and whether one does has not been read"
            .to_owned(),
    }
    };
    match price {
        Price::OnDemand(rate) => saved(*rate),
        Price::Unknown(why) => Saving::Unknown { why: why.clone() },
    }
}
