//! A piece of work that should finish: a job of AWS Batch, a step of Slurm, a task of a pipeline.

use super::{Coverage, Known, Machine, Presence, SnapshotPart, Thing, batch::thing_of_job, coverage};
use crate::{
    inventory::{Inventory, owner},
    pricing::Cost,
    verdict::{
        Wait,
        work::{self, Contract, WorkCase, WorkJudgement},
    },
};
use jiff::Timestamp;
use model::{ResourceKey, ResourceKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// Work that may be stuck, or of which that was found once.
#[derive(Clone, Debug)]
pub struct Work {
    /// Its key.
    pub id: ResourceKey,
    /// What detectors decide from.
    pub inputs: WorkInputs,
    /// The verdict on the inputs' case, which is judged once for all classes.
    pub judgement: WorkJudgement,
    /// What it is, and whose.
    pub thing: Option<Thing>,
    /// What it costs.
    pub cost: Cost,
}

/// Everything that a detection on it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkInputs {
    /// As of when.
    pub at: Timestamp,
    /// The machine that it runs on.
    pub machine: ResourceKey,
    /// Whether that machine is there and runs; none if nothing is known of it.
    pub presence: Option<Presence>,
    /// How its provider lists it; none for what no provider lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listed>,
    /// What its node's agent says of it.
    pub work: WorkCase,
    /// What could not be read of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SnapshotPart>,
}

/// How a provider lists a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Whether its provider would list it.
    pub coverage: Coverage,
    /// In the provider's words; none if it does not list it, or did not say.
    pub status: Option<String>,
    /// Whether it is listed.
    pub is_there: bool,
}

impl WorkInputs {
    /// Whether a provider was asked about it at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        match &self.listed {
            Some(listed) => listed.coverage != Coverage::NotAsked,
            None => self.presence.as_ref().is_some_and(Presence::was_asked),
        }
    }
}

/// What is asked of one machine's agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Work that is known by its key.
    pub named: BTreeMap<ResourceKey, Contract>,
    /// Whether the agent shows runs whose tasks are to be examined.
    pub has_runs: bool,
}

/// Which machines are asked for what: for jobs that Batch says to run there, for what open findings name, and for runs that are open.
#[must_use]
pub fn asked<'a>(
    known: &Known<'_>,
    machines: &[Machine],
    named: impl IntoIterator<Item = (&'a ResourceKey, &'a WorkInputs)>,
) -> BTreeMap<ResourceKey, Asked> {
    let mut all: BTreeMap<ResourceKey, Asked> = BTreeMap::new();
    let running = known.jobs.values().filter(|job| job.status.as_deref() == Some("RUNNING"));
    let placed = running.filter_map(|job| {
        let ((machine, _), containers) = known.machine_of(&job.id).zip(known.containers_of(job))?;
        Some((&job.id, machine, Contract::BatchJob { containers }))
    });
    let placed: Vec<_> = placed.collect();
    let is_placed: HashSet<&ResourceKey> = placed.iter().map(|(key, _, _)| *key).collect();
    // The latest attempt of a job may be elsewhere than the one that a finding tells of.
    for (key, inputs) in named.into_iter().filter(|(key, _)| !is_placed.contains(key)) {
        all.entry(inputs.machine.clone()).or_default().named.insert(key.clone(), inputs.work.contract.clone());
    }
    for (key, machine, contract) in placed {
        all.entry(machine.clone()).or_default().named.insert(key.clone(), contract);
    }
    for machine in machines {
        let is_open = |wait: &Wait| matches!(wait, Wait::Run { .. } | Wait::BatchStep { .. });
        let node = machine.inputs.case.node.as_ref();
        if node.is_some_and(|node| node.has_orphaned_tasks || node.waits.iter().any(is_open)) {
            all.entry(machine.subject.id.clone()).or_default().has_runs = true;
        }
    }
    all
}

/// The key of a task that no provider names.
#[must_use]
pub fn key_of_task(machine: &ResourceKey, local_id: &str) -> ResourceKey {
    let id = format!("{}/{local_id}", machine.id);
    ResourceKey { kind: ResourceKind::Workload, id, ..machine.clone() }
}

impl Work {
    /// Work on a machine, judged. What it costs is not known yet.
    #[must_use]
    pub fn judged(
        id: ResourceKey,
        (key, machine): (&ResourceKey, Option<&Machine>),
        (inventory, known): (&Inventory, &Known<'_>),
        at: Timestamp,
        case: WorkCase,
    ) -> Self {
        let job = known.jobs.get(&id).copied();
        let is_job = matches!(case.contract, Contract::BatchJob { .. });
        let presence = machine.map(|machine| machine.inputs.presence.clone());
        let covered = coverage(inventory, &id);
        let listed = is_job.then(|| Listed {
            coverage: covered,
            status: job.and_then(|job| job.status.clone()),
            is_there: job.is_some(),
        });
        let mut failed = Vec::new();
        if (is_job && covered == Coverage::Failed) || presence.as_ref().is_some_and(Presence::is_unread) {
            failed.push(SnapshotPart::Inventory);
        }
        let tasks = ResourceKey { kind: ResourceKind::EcsTask, ..id.clone() };
        if is_job && coverage(inventory, &tasks) != Coverage::Complete {
            failed.push(SnapshotPart::EcsTasks);
        }
        let thing = if is_job {
            job.map(thing_of_job)
        } else {
            let instance = machine.and_then(|machine| machine.subject.instance.as_ref());
            Some(Thing {
                name: case.contract.name().map(str::to_owned),
                what: Some(case.contract.what()),
                owner: instance.and_then(|instance| owner(&instance.tags)),
                created_at: None,
            })
        };
        let judgement = work::judge(&case);
        let inputs = WorkInputs { at, machine: key.clone(), presence, listed, work: case, failed };
        Self { id, inputs, judgement, thing, cost: Cost::Unknown { why: "not looked up".to_owned() } }
    }
}
