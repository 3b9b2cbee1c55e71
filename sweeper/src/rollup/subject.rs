//! Whose activity is added up, and what it is called.

use heartbeat::{
    BootId,
    wire::{self, Class},
};
use serde::{Deserialize, Serialize};

/// Whose activity it is, on one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Subject {
    /// Processes that belong together.
    Workload {
        /// `workload`, `housekeeping`, `kernel`, `agent`, or `unknown` of a class that this version does not know.
        class: String,
        /// Its cgroup path, or `overflow`.
        key: String,
    },
    /// One execution of a pipeline.
    Run {
        /// In which boot.
        boot: BootId,
        /// Its id there.
        run: String,
    },
    /// One task of a run.
    Task {
        /// In which boot.
        boot: BootId,
        /// The run's id.
        run: String,
        /// The task's id within it.
        task: u64,
    },
    /// A tool that a task ran.
    Tool {
        /// In which boot.
        boot: BootId,
        /// The run's id.
        run: String,
        /// The task's id within it.
        task: u64,
        /// Its name, or `overflow`.
        tool: String,
    },
    /// All of one kind beyond the most that are told apart. Its histograms are of each of them by itself.
    Overflow {
        /// `workload`, `run`, `task` or `tool`.
        of: String,
    },
}

impl Subject {
    /// What kind of subject it is.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Workload { .. } => "workload",
            Self::Run { .. } => "run",
            Self::Task { .. } => "task",
            Self::Tool { .. } => "tool",
            Self::Overflow { of } => of,
        }
    }
}

/// What it is called, as the newest heartbeat of the period has it. Empty is *not told*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// What kind of workload it is, or the run's engine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name there: a container's id, a job's id, a unit's name; of a run the pipeline's name, of a task its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `NAMESPACE/POD/CONTAINER` of a container, as far as told; of a run the key of the workload that it runs in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The container's image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The batch job around a container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub job: String,
    /// Executable name of the process in it that used the most CPU time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub top_command: String,
    /// How the first process of a run or task ended, as wait(2) gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_status: Option<u32>,
}

impl Label {
    /// Of a row of its own.
    pub(super) fn of_workload(row: &wire::WorkloadActivity) -> Self {
        let name = row.name.as_ref();
        let container = name.and_then(|name| name.container.as_ref());
        let parts = container.map(|told| [told.namespace.as_str(), &told.pod, &told.name]);
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        Self {
            kind: name.map(|name| name.kind.clone()).unwrap_or_default(),
            name: name.map(|name| name.id.clone()).unwrap_or_default(),
            place: parts.join("/"),
            image: container.map(|told| told.image.clone()).unwrap_or_default(),
            job: row.batch_job.as_ref().map(|job| job.id.clone()).unwrap_or_default(),
            top_command: row.top_command.clone(),
            wait_status: None,
        }
    }

    /// Of a run.
    pub(super) fn of_run(run: &wire::Run) -> Self {
        Self {
            kind: run.engine.clone(),
            name: run.pipeline.clone(),
            place: run.workload.clone(),
            wait_status: run.wait_status,
            ..Self::default()
        }
    }

    /// Of a task.
    pub(super) fn of_task(task: &wire::Task) -> Self {
        Self { name: task.name.clone(), wait_status: task.wait_status, ..Self::default() }
    }
}

/// The name of a row's class.
pub(super) fn class(row: &wire::WorkloadActivity) -> &'static str {
    match Class::try_from(row.class) {
        Ok(Class::Workload) => "workload",
        Ok(Class::Housekeeping) => "housekeeping",
        Ok(Class::Kernel) => "kernel",
        Ok(Class::Self_) => "agent",
        Ok(Class::Unspecified) | Err(_) => "unknown",
    }
}
