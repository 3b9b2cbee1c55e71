//! Which rule makes the plan of a finding, and what it looks at.

use super::{
    super::{bills::Bills, report},
    never::{NO_MACHINE, NOT_EC2, STUCK_JOB, never},
};
use crate::{
    detectors::{Class, On},
    findings::Finding,
    inventory::{AutoScalingGroup, Instance, Inventory, LaunchedBy},
    pricing::Cost,
    reconcile::Planned,
    snapshot::{AroundJob, Known, Machine, Subject, Work, job_facts},
    verdict::work::certain,
};
use jiff::Timestamp;
use model::{
    Provider, ResourceKey, ResourceKind,
    address::{AddressFacts, Told},
    job::JobFacts,
    machine,
    plan::Plan,
    volume::VolumeFacts,
};
use recommender::rules::{
    Input, Price,
    delete::DeleteInput,
    end::{Attached, EndInput},
    release::ReleaseInput,
    stop::StopInput,
    terminate::TerminateInput,
};
use std::collections::{BTreeMap, HashMap};

/// What a plan is made of.
enum Of<'a> {
    /// A machine to stop.
    Machine(&'a Machine),
    /// A machine to end, and its group.
    Member(&'a Machine, &'a Instance, &'a AutoScalingGroup),
    /// An address to release.
    Address(AddressFacts),
    /// A volume to delete, and the most that a snapshot of it may cost.
    Volume(VolumeFacts, Price),
    /// A job to terminate.
    Job(&'a Work, Box<JobFacts>),
}

/// What may be done that nothing undoes, beside what is left over.
pub(super) struct May<'a> {
    pub(super) groups: Groups<'a>,
    /// The jobs of the inventory, where stuck ones may be terminated.
    pub(super) jobs: Option<Jobs<'a>>,
}

/// What is known of jobs.
pub(super) struct Jobs<'a> {
    pub(super) inventory: &'a Inventory,
    pub(super) known: Known<'a>,
    /// Who submitted them, by the ids of what was submitted.
    pub(super) submitted_by: &'a BTreeMap<String, LaunchedBy>,
}

/// The Auto Scaling groups whose machines may be ended.
pub(super) type Groups<'a> = HashMap<&'a ResourceKey, &'a AutoScalingGroup>;

/// Makes the plans of the findings on one resource.
pub(super) struct Planner<'a> {
    of: Of<'a>,
    bills: &'a Bills<'a>,
    now: Timestamp,
}

impl<'a> Planner<'a> {
    /// One for a class of waste on a resource, or why no plan is ever made of it.
    pub(super) fn of(
        class: Class,
        on: On<'a>,
        (bills, may): (&'a Bills<'a>, &May<'a>),
        now: Timestamp,
    ) -> Result<Self, &'static str> {
        if let Some(why) = never(class, on.resource()) {
            return Err(why);
        }
        let of = match on {
            On::Machine(machine) => match group_of(machine, &may.groups) {
                Some((instance, group)) => Of::Member(machine, instance, group),
                None => Of::Machine(machine),
            },
            On::Leftover(leftover) if leftover.id.kind == ResourceKind::Volume => {
                let volume = bills.disk(&leftover.id).ok_or("its provider does not list it")?;
                Of::Volume(volume.delete_facts().ok_or(NOT_EC2)?, price(&bills.snapshot_of(volume)))
            }
            On::Leftover(leftover) => {
                let address = bills.address(&leftover.id).ok_or("its provider does not list it")?;
                let unasked = || Told::Unknown { why: "it is asked right before the call".to_owned() };
                Of::Address(address.release_facts(unasked(), unasked()).ok_or(NOT_EC2)?)
            }
            On::Work(work) => {
                let Jobs { inventory, known, submitted_by } = may.jobs.as_ref().ok_or(STUCK_JOB)?;
                let machine = inventory.instances.iter().find(|instance| instance.id == work.inputs.machine);
                let begin = work.inputs.work.begin.as_ref();
                let around = AroundJob {
                    machine_tags: machine.map(|machine| machine.tags.clone()),
                    submitted_by,
                    rests_since: begin.and_then(|begin| Timestamp::from_millisecond(begin.end_unix_ms).ok()),
                };
                let facts = job_facts((inventory, known), &work.id, around);
                Of::Job(work, Box::new(facts.ok_or("its provider does not list it")?))
            }
            On::Group(_) | On::Batch(_) => return Err(NO_MACHINE),
        };
        Ok(Self { of, bills, now })
    }

    /// What a job is in, of which somebody may want it left alone as well.
    pub(super) fn is_in(&self) -> Vec<ResourceKey> {
        match &self.of {
            Of::Job(work, job) => job.is_in(&work.id),
            Of::Machine(_) | Of::Member(..) | Of::Address(_) | Of::Volume(..) => Vec::new(),
        }
    }

    /// The plan of a finding, with all that it was made from.
    pub(super) fn plan(&self, finding: &Finding) -> Planned {
        let input = match &self.of {
            Of::Machine(machine) => Input::Stop(Box::new(self.stop(finding, machine))),
            Of::Member(machine, instance, group) => Input::End(Box::new(self.end(finding, machine, instance, group))),
            Of::Address(address) => Input::Release(Box::new(self.release(finding, address))),
            Of::Volume(volume, snapshot) => Input::Delete(Box::new(self.delete(finding, volume, snapshot))),
            Of::Job(work, job) => Input::Terminate(Box::new(self.terminate(finding, work, job))),
        };
        let priced = |plan: Plan| {
            let prices = plan.content().keeps_billing.iter().filter_map(|charge| self.bills.charge(charge)).collect();
            plan.priced(prices)
        };
        let plan = input.plan().map(priced).map_err(|why| why.to_string());
        Planned { input, plan }
    }

    fn stop(&self, finding: &Finding, machine: &Machine) -> StopInput {
        StopInput {
            finding: finding.id.0.clone(),
            record: record(finding),
            resource: finding.resource.clone(),
            verdict: machine.judgement.verdict,
            machine: machine_facts(machine),
            price: price(&finding.cost),
            lent_ipv4: machine.subject.instance.as_ref().map(|instance| self.bills.lent_address(instance)),
            now: self.now,
        }
    }

    fn end(&self, finding: &Finding, machine: &Machine, instance: &Instance, group: &AutoScalingGroup) -> EndInput {
        let volumes = instance.volumes.iter();
        let unasked = Told::Unknown { why: "it is asked right before the call".to_owned() };
        EndInput {
            finding: finding.id.0.clone(),
            record: record(finding),
            resource: finding.resource.clone(),
            verdict: machine.judgement.verdict,
            machine: machine_facts(machine),
            group: group.end_facts(unasked),
            volumes: volumes
                .map(|volume| Attached { id: volume.id.clone(), goes_with_it: volume.delete_on_termination })
                .collect(),
            price: price(&finding.cost),
            now: self.now,
        }
    }

    fn release(&self, finding: &Finding, address: &AddressFacts) -> ReleaseInput {
        ReleaseInput {
            finding: finding.id.0.clone(),
            record: record(finding),
            resource: finding.resource.clone(),
            since: finding.since,
            address: address.clone(),
            price: price(&finding.cost),
            now: self.now,
        }
    }

    fn delete(&self, finding: &Finding, volume: &VolumeFacts, snapshot: &Price) -> DeleteInput {
        DeleteInput {
            finding: finding.id.0.clone(),
            record: record(finding),
            resource: finding.resource.clone(),
            since: finding.since,
            volume: volume.clone(),
            price: price(&finding.cost),
            snapshot_at_most: snapshot.clone(),
            now: self.now,
        }
    }
}

impl Planner<'_> {
    fn terminate(&self, finding: &Finding, work: &Work, job: &JobFacts) -> TerminateInput {
        TerminateInput {
            finding: finding.id.0.clone(),
            record: record(finding),
            resource: finding.resource.clone(),
            verdict: work.judgement.verdict,
            doubt: certain(&work.inputs.work, &work.judgement).err().map(|doubt| doubt.to_string()),
            since: finding.since,
            job: job.clone(),
            price: price(&finding.cost),
            now: self.now,
        }
    }
}

/// The number of the finding's record that a plan is made with: the next one.
fn record(finding: &Finding) -> u32 {
    finding.recorded.count.saturating_add(1)
}

fn price(cost: &Cost) -> Price {
    match cost.rate() {
        Some(rate) => Price::OnDemand(rate),
        None => Price::Unknown(report::cost(cost).2.unwrap_or_default()),
    }
}

/// The instance of a machine and the Auto Scaling group that keeps it up, of those whose machines may be ended; none if it is none's.
fn group_of<'a>(machine: &'a Machine, groups: &Groups<'a>) -> Option<(&'a Instance, &'a AutoScalingGroup)> {
    let instance = machine.subject.instance.as_ref().filter(|instance| instance.id.provider == Provider::Aws)?;
    let key = instance.group()?;
    Some((instance, groups.get(&key).copied()?))
}

fn machine_facts(machine: &Machine) -> machine::Machine {
    stop_facts(machine).unwrap_or_else(|| match machine.subject.id.provider {
        Provider::Gcp => machine::Machine::NotKnown("Google Cloud".to_owned()),
        Provider::Aws | Provider::OnPrem => machine::Machine::OnPrem,
    })
}

/// What the *stop* rule looks at; none for a machine without an instance that it knows.
fn stop_facts(machine: &Machine) -> Option<machine::Machine> {
    let Subject { instance, groups_are_known, schedulers, .. } = &machine.subject;
    instance.as_ref()?.stop_facts(*groups_are_known, schedulers, machine.provider.protection.clone())
}
