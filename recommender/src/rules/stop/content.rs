//! The plan itself: what is done and undone, what is lost, what keeps billing, what is saved.

use model::{
    HourlyRate, Usd,
    machine::{InstanceStore, PublicIpv4},
    plan::{Action, Charge, Condition, Loss, PlanContent, Saving},
};

use super::{
    Price, StopInput,
    no_plan::{Facts, Stoppable},
};

pub(super) fn of(input: &StopInput, stoppable: &Stoppable<'_>) -> PlanContent {
    let facts = stoppable.facts;
    let (name, place) = match facts {
        Facts::Ec2(facts) => (&facts.name, &facts.region),
        Facts::ComputeEngine(facts) => (&facts.name, &facts.zone),
    };
    let called = name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    let (does, action) = match hibernates(facts) {
        true => ("Hibernate", Action::HibernateInstance),
        false => ("Stop", Action::StopInstance),
    };
    PlanContent {
        finding: input.finding.clone(),
        record: input.record,
        resource: input.resource.clone(),
        title: format!("{does} the idle {} instance {}{called} in {place}", stoppable.instance_type, input.resource.id),
        conditions: conditions(stoppable),
        actions: vec![action],
        reversal: vec![Action::StartInstance],
        lost: lost(stoppable),
        keeps_billing: keeps_billing(facts),
        net_saving: saving(input, facts),
    }
}

impl<'a> Facts<'a> {
    fn public_ipv4(self) -> &'a [PublicIpv4] {
        match self {
            Self::Ec2(facts) => &facts.public_ipv4,
            Self::ComputeEngine(facts) => &facts.public_ipv4,
        }
    }

    fn volumes(self) -> &'a [String] {
        match self {
            Self::Ec2(facts) => &facts.volumes,
            Self::ComputeEngine(facts) => &facts.disks,
        }
    }

    /// Of Google Cloud it is always known: its disks say what they are.
    fn may_have_instance_store(self) -> bool {
        match self {
            Self::Ec2(facts) => facts.instance_store == InstanceStore::Unknown,
            Self::ComputeEngine(_) => false,
        }
    }
}

/// Whoever set a machine up to hibernate wants its memory back.
fn hibernates(facts: Facts<'_>) -> bool {
    matches!(facts, Facts::Ec2(facts) if facts.hibernates == Some(true))
}

fn conditions(stoppable: &Stoppable<'_>) -> Vec<Condition> {
    let mut conditions = vec![
        Condition::TagsPermit,
        Condition::StateIs { state: "running".to_owned() },
        Condition::LaunchedAtIs { at: stoppable.launched_at },
        Condition::InstanceTypeIs { instance_type: stoppable.instance_type.to_owned() },
        Condition::NotProtected,
    ];
    if stoppable.facts.may_have_instance_store() {
        conditions.push(Condition::NoInstanceStoreWrites);
    }
    conditions.push(Condition::StillIdle);
    conditions
}

fn lost(stoppable: &Stoppable<'_>) -> Vec<Loss> {
    let facts = stoppable.facts;
    let mut lost = vec![if hibernates(facts) { Loss::MemoryUnlessHibernated } else { Loss::Memory }];
    lost.extend(
        facts
            .public_ipv4()
            .iter()
            .filter(|ip| ip.elastic != Some(true))
            .map(|ip| Loss::PublicIpv4 { address: ip.address.clone(), may_be_elastic: ip.elastic.is_none() }),
    );
    if facts.may_have_instance_store() {
        lost.push(Loss::InstanceStore);
    }
    lost.push(Loss::Capacity { instance_type: stoppable.instance_type.to_owned() });
    lost
}

fn keeps_billing(facts: Facts<'_>) -> Vec<Charge> {
    let volumes = facts.volumes().iter().map(|id| Charge::Volume { id: id.clone() });
    let addresses = facts
        .public_ipv4()
        .iter()
        .filter(|ip| ip.elastic != Some(false))
        .map(|ip| Charge::ElasticIpv4 { address: ip.address.clone(), may_be_released: ip.elastic.is_none() });
    volumes.chain(addresses).chain([Charge::CommitmentsUnknown]).collect()
}

/// What keeps billing is billed before and after, so it is no part of the difference. The machine's own rate is net of it, and so is that of the
/// addresses that it gives back.
fn saving(input: &StopInput, facts: Facts<'_>) -> Saving {
    let rate = match &input.price {
        Price::OnDemand(rate) => *rate,
        Price::Unknown(why) => return Saving::Unknown { why: why.clone() },
    };
    let lent = facts.public_ipv4().iter().filter(|ip| ip.elastic == Some(false)).count();
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
    let discounts = match facts {
        // <https://docs.cloud.google.com/compute/docs/sustained-use-discounts>
        Facts::ComputeEngine(_) => {
            "discounts for sustained use (up to 30 %: N1, N2, N2D, C2, M1, and GPUs of N1) and for commitments have not been read, and \
             with any of them less is saved"
        }
        Facts::Ec2(_) => {
            "hours that a reservation or savings plan covers would save no cash, and whether one does has not been read"
        }
    };
    Saving::Known {
        per_hour,
        per_month: per_hour.per_month(),
        basis: format!(
            "the on-demand list price of the instance {of}, over 730 hours a month; {besides}volumes and elastic addresses \
             are billed as before; {discounts}"
        ),
    }
}
