//! Each AWS Batch job, down to the machine, the node and the containers that it runs in.
//!
//! Pure: what sweeps have listed comes in, chains go out, at the cost of one look-up for each link. The chain is job → attempt → ECS task → container
//! instance → EC2 instance → node → container. Where two links say different things the later source wins: ECS knows where a task is, while
//! Batch still tells of the attempt before. A link that is missing is a [`Machine::Unknown`] with its reason, never an error and never nowhere.

use model::ResourceKey;
use std::collections::{BTreeMap, HashMap};

use heartbeat::NodeId;
use serde::Serialize;

use crate::inventory::{BatchJob, EcsContainerInstance, EcsTask, JobTask, Pod, last_part};

/// A job and where it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chain {
    /// What Batch says.
    pub job: BatchJob,
    /// Where its current or last attempt is, if it has been placed; an array and a multi-node job as a whole are nowhere, their parts are.
    pub placements: Vec<Placement>,
}

/// Where one attempt is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// ARN of its ECS task.
    pub task: Option<String>,
    /// ARN of what that runs on.
    pub container_instance: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The agent on it.
    pub node: Option<NodeId>,
    /// Its containers.
    pub containers: Vec<Container>,
}

/// A machine that a job runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Machine {
    /// An EC2 instance.
    Instance {
        /// Its resource key.
        id: NodeId,
    },
    /// A machine that is registered with ECS and not EC2's: `mi-…`.
    External {
        /// In ECS's words.
        id: String,
    },
    /// Nobody's to see: Fargate.
    Fargate,
    /// A Kubernetes node on which no agent of that name reports.
    KubernetesNode {
        /// Its name.
        name: String,
    },
    /// It is not known, and why.
    Unknown {
        /// For a person.
        why: String,
    },
}

/// A container of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Container {
    /// In the job's definition, where it has several; ECS names each.
    pub name: Option<String>,
    /// Its id on the machine.
    pub runtime_id: Option<String>,
    /// In ECS's words.
    pub status: Option<String>,
    /// How it ended.
    pub exit_code: Option<i64>,
    /// The workload in the node's latest heartbeat that is this container, or the task around it.
    pub workload: Option<Workload>,
}

/// A workload as an agent names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Workload {
    /// `ecs`, `docker`, …
    pub kind: String,
    /// Its name there.
    pub id: String,
}

/// An agent that reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporting {
    /// Who.
    pub id: NodeId,
    /// The kernel's node name, which on EKS is the Kubernetes node's.
    pub hostname: String,
}

/// What the chains are made of.
#[derive(Debug, Default)]
pub struct JobFacts {
    /// Of Batch.
    pub jobs: Vec<BatchJob>,
    /// Of ECS.
    pub tasks: Vec<EcsTask>,
    /// Of ECS.
    pub container_instances: Vec<EcsContainerInstance>,
    /// Of the agents.
    pub nodes: Vec<Reporting>,
    /// Accounts and regions in which ECS could not be read, and why.
    pub ecs_not_read: BTreeMap<(String, String), String>,
}

impl JobFacts {
    /// The chain of every job.
    #[must_use]
    pub fn join(self) -> Vec<Chain> {
        let Self { jobs, tasks, container_instances, nodes, ecs_not_read } = self;
        let links = Links {
            tasks: tasks.iter().map(|task| (task.arn.as_str(), task)).collect(),
            machines: container_instances.iter().map(|machine| (machine.arn.as_str(), machine)).collect(),
            nodes: nodes.iter().map(|node| (&node.id, node)).collect(),
            by_hostname: by_hostname(&nodes),
            ecs_not_read: &ecs_not_read,
        };
        let placements = |job: &BatchJob| {
            if !job.is_placed() && !job.is_over() {
                // Set back for a retry: what is told of a task is of the attempt before.
                return Vec::new();
            }
            let on_ecs = job.tasks.iter().map(|task| links.of_task(job, task));
            on_ecs.chain(job.pod.iter().map(|pod| links.of_pod(job, pod))).collect()
        };
        jobs.into_iter().map(|job| Chain { placements: placements(&job), job }).collect()
    }
}

/// Ties containers to what the agents on their machines reported last.
pub fn resolve(chains: &mut [Chain], reported: &BTreeMap<NodeId, Vec<Workload>>) {
    for placement in chains.iter_mut().flat_map(|chain| &mut chain.placements) {
        let Some(workloads) = placement.node.as_ref().and_then(|node| reported.get(node)) else { continue };
        let task = placement.task.as_deref().map(last_part);
        for container in &mut placement.containers {
            let runtime_id = container.runtime_id.as_deref();
            let is_it = |workload: &&Workload| {
                // An ECS task's container is `TASK/CONTAINER`; where only Docker's part of the path is there, its id alone.
                runtime_id.is_some_and(|id| workload.id.rsplit('/').next() == Some(id))
            };
            let is_around = |workload: &&Workload| workload.kind == "ecs" && task == Some(workload.id.as_str());
            let resolved = workloads.iter().find(is_it).or_else(|| workloads.iter().find(is_around));
            container.workload = resolved.cloned();
        }
    }
}

/// Nodes of one account and region by their names; a name that two have names none.
fn by_hostname(nodes: &[Reporting]) -> HashMap<(&str, &str, &str), Option<&NodeId>> {
    let mut named = HashMap::new();
    for node in nodes {
        if let NodeId::Aws { account, region, .. } = &node.id {
            named
                .entry((account.as_str(), region.as_str(), node.hostname.as_str()))
                .and_modify(|one| *one = None)
                .or_insert(Some(&node.id));
        }
    }
    named
}

struct Links<'a> {
    tasks: HashMap<&'a str, &'a EcsTask>,
    machines: HashMap<&'a str, &'a EcsContainerInstance>,
    nodes: HashMap<&'a NodeId, &'a Reporting>,
    by_hostname: HashMap<(&'a str, &'a str, &'a str), Option<&'a NodeId>>,
    ecs_not_read: &'a BTreeMap<(String, String), String>,
}

impl Links<'_> {
    fn of_task(&self, job: &BatchJob, told: &JobTask) -> Placement {
        let task = told.arn.as_deref().and_then(|arn| self.tasks.get(arn)).copied();
        let by_ecs = task.and_then(|task| task.container_instance_arn.clone());
        let container_instance = by_ecs.or_else(|| told.container_instance_arn.clone());
        let machine = self.machine(job, task, container_instance.as_deref());
        let containers = match task {
            Some(task) => task
                .containers
                .iter()
                .map(|one| Container {
                    name: one.name.clone(),
                    runtime_id: one.runtime_id.clone(),
                    status: one.status.clone(),
                    exit_code: one.exit_code,
                    workload: None,
                })
                .collect(),
            None => told
                .containers
                .iter()
                .map(|one| Container { name: one.name.clone(), exit_code: one.exit_code, ..Container::default() })
                .collect(),
        };
        Placement { task: told.arn.clone(), container_instance, node: self.node(&machine), machine, containers }
    }

    fn machine(&self, job: &BatchJob, task: Option<&EcsTask>, container_instance: Option<&str>) -> Machine {
        let ResourceKey { account, location: region, .. } = &job.id;
        let unknown = |why: &str| Machine::Unknown { why: why.to_owned() };
        if let Some(why) = self.ecs_not_read.get(&(account.clone(), region.clone())) {
            return unknown(&format!("ECS was not read: {why}"));
        }
        if task.and_then(|task| task.launch_type.as_deref()) == Some("FARGATE") {
            return Machine::Fargate;
        }
        let Some(arn) = container_instance else {
            return match task {
                Some(_) => unknown("its task has not been placed"),
                None if job.is_over() => unknown("it is over, and its task is not asked for"),
                None => unknown("ECS does not know its task"),
            };
        };
        let Some(machine) = self.machines.get(arn) else {
            return unknown(if job.is_over() {
                "it is over, and its container instance is not asked for"
            } else {
                "ECS does not know its container instance"
            });
        };
        match machine.instance_id.as_deref() {
            None => unknown("its container instance does not say its machine"),
            Some(id) => instance(job, id).unwrap_or_else(|| Machine::External { id: id.to_owned() }),
        }
    }

    fn of_pod(&self, job: &BatchJob, pod: &Pod) -> Placement {
        let ResourceKey { account, location: region, .. } = &job.id;
        let machine = match pod.node.as_deref() {
            None => Machine::Unknown { why: "its pod has not been placed".to_owned() },
            Some(name) => {
                let named = self.by_hostname.get(&(account.as_str(), region.as_str(), name));
                match named.copied().flatten() {
                    Some(id) => Machine::Instance { id: id.clone() },
                    // A node may be called after its instance.
                    None => instance(job, name.split('.').next().unwrap_or(name))
                        .unwrap_or_else(|| Machine::KubernetesNode { name: name.to_owned() }),
                }
            }
        };
        Placement { task: None, container_instance: None, node: self.node(&machine), machine, containers: Vec::new() }
    }

    fn node(&self, machine: &Machine) -> Option<NodeId> {
        let Machine::Instance { id } = machine else { return None };
        self.nodes.get(id).map(|node| node.id.clone())
    }
}

/// The EC2 instance of that id beside a job; none for what is not EC2's.
fn instance(job: &BatchJob, id: &str) -> Option<Machine> {
    if !id.starts_with("i-") {
        return None;
    }
    let ResourceKey { account, location: region, .. } = &job.id;
    let id = NodeId::Aws { account: account.clone(), region: region.clone(), instance: id.to_owned() };
    Some(Machine::Instance { id })
}

#[cfg(test)]
mod tests;
