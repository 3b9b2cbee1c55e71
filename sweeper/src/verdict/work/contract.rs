//! What says that a piece of work should finish.

use crate::verdict::{
    signal::is_workload,
    wait::{containers_of_jobs, orphaned_tasks},
};
use heartbeat::wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the agent calls the engine of a plain script. What a script starts may be a server, which never finishes.
const SCRIPT: &str = "script";
const SLURM: &str = "slurm";

/// What says that work should finish, and by which it is found in a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Contract {
    /// It is a job of AWS Batch.
    BatchJob {
        /// Ids of its ECS task and of that task's containers, as agents name them.
        containers: BTreeSet<String>,
    },
    /// It is a task of a run that has not ended: a step of a Slurm job, a task of a pipeline.
    RunTask(RunTask),
    /// It is a pod of a job of Kubernetes, or of a workflow of Argo's.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        pod: String,
        /// Kind and name of what controls it: `Job/align`.
        owner: String,
    },
    /// It is a task of a run that has ended: it should have ended with it.
    OrphanedTask(RunTask),
    /// It is a run that has not ended, as a whole: its tasks should succeed.
    Run {
        /// What drives it.
        engine: String,
        /// The pipeline's name; empty if the command line does not tell it.
        pipeline: String,
        /// Identifies the run on its node and in this boot.
        run: String,
    },
}

/// A task of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTask {
    /// What drives the run, for example `slurm`.
    pub engine: String,
    /// The pipeline's name; empty if the command line does not tell it.
    pub pipeline: String,
    /// Identifies the run on its node and in this boot.
    pub run: String,
    /// Identifies the task within its run.
    pub task: u64,
    /// The task's name.
    pub name: String,
}

impl RunTask {
    fn new(run: &wire::Run, task: &wire::Task) -> Self {
        Self {
            engine: run.engine.clone(),
            pipeline: run.pipeline.clone(),
            run: run.id.clone(),
            task: task.id,
            name: task.name.clone(),
        }
    }

    fn what(&self) -> String {
        let Self { engine, pipeline, run, .. } = self;
        match (engine.as_str(), pipeline.as_str()) {
            (SLURM, _) => format!("step of Slurm job {}", slurm_id(run)),
            (engine, "") => format!("task of a {engine} run"),
            (engine, pipeline) => format!("task of the {engine} run {pipeline}"),
        }
    }
}

impl Contract {
    /// Every run that a heartbeat shows to be open.
    pub fn open_runs(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = Self> {
        open_runs(heartbeat).map(|run| Self::Run {
            engine: run.engine.clone(),
            pipeline: run.pipeline.clone(),
            run: run.id.clone(),
        })
    }

    /// Every task of a run that a heartbeat shows to be open.
    pub fn open_tasks(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = Self> {
        open_runs(heartbeat).flat_map(|run| {
            let tasks = run.tasks.iter().filter(|task| task.ended_boottime_ns.is_none());
            tasks.map(|task| Self::RunTask(RunTask::new(run, task)))
        })
    }

    /// Every pod of a job that a heartbeat shows to live; one of several containers more than once.
    pub fn open_pods(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = Self> {
        containers_of_jobs(heartbeat).map(|container| Self::Pod {
            namespace: container.namespace.clone(),
            pod: container.pod.clone(),
            owner: container.owner.clone(),
        })
    }

    /// Every task that a heartbeat shows to live after its run.
    pub fn orphaned_tasks(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = Self> {
        orphaned_tasks(heartbeat).map(|(run, task)| Self::OrphanedTask(RunTask::new(run, task)))
    }

    /// What names the work among all that its node does, where no provider names it.
    #[must_use]
    pub fn local_id(&self) -> Option<String> {
        match self {
            Self::RunTask(RunTask { run, task, .. }) | Self::OrphanedTask(RunTask { run, task, .. }) => {
                Some(format!("{run}/{task}"))
            }
            Self::Run { run, .. } => Some(run.clone()),
            Self::Pod { namespace, pod, .. } => Some(format!("pod/{namespace}/{pod}")),
            Self::BatchJob { .. } => None,
        }
    }

    /// What people call it; none where its provider says that.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::RunTask(RunTask { name, .. })
            | Self::OrphanedTask(RunTask { name, .. })
            | Self::Pod { pod: name, .. }
            | Self::Run { pipeline: name, .. } => Some(name).filter(|name| !name.is_empty()).map(String::as_str),
            Self::BatchJob { .. } => None,
        }
    }

    /// What it is: `step of the Slurm job …`, `task of a snakemake run`.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::RunTask(task) => task.what(),
            Self::OrphanedTask(task) => format!("{}, which has ended", task.what()),
            Self::Run { engine, run, .. } if engine == SLURM => format!("Slurm job {}", slurm_id(run)),
            Self::Run { engine, .. } => format!("{engine} run"),
            Self::Pod { namespace, owner, .. } => format!("pod of {owner} in namespace {namespace}"),
            Self::BatchJob { .. } => "AWS Batch job".to_owned(),
        }
    }
}

/// Runs that have not ended and that are somebody's, without scripts.
fn open_runs(heartbeat: &wire::Heartbeat) -> impl Iterator<Item = &wire::Run> {
    heartbeat.runs.iter().filter(|run| {
        let is_somebodys = run.activity.as_ref().is_none_or(|activity| is_workload(&activity));
        run.engine != SCRIPT && run.ended_boottime_ns.is_none() && is_somebodys
    })
}

/// The job's own id in the id of its run, `slurm:17`.
fn slurm_id(run: &str) -> &str {
    run.split_once(':').map_or(run, |(_, id)| id)
}
