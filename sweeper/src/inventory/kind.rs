//! Kinds of what is listed.

use super::Provider;

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A machine.
    Instance,
    /// A disk that outlives machines.
    Volume,
    /// A public address that outlives machines.
    Address,
    /// A copy of a disk.
    Snapshot,
    /// What keeps a number of machines alive.
    AutoScalingGroup,
    /// Where jobs of AWS Batch may run.
    BatchComputeEnvironment,
    /// Where they wait.
    BatchJobQueue,
    /// A job of AWS Batch.
    BatchJob,
    /// A machine as ECS knows it.
    EcsContainerInstance,
    /// The containers of one attempt of a job, or of one copy of a service.
    EcsTask,
    /// What the provider measured of machines from outside.
    Usage,
    /// Who started machines.
    Launch,
    /// What a machine of a type has: processors, memory, accelerators, disks of the host.
    MachineType,
    /// What protects machines from being stopped or ended.
    Protection,
}

impl Kind {
    /// The word for it in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Volume => "volume",
            Self::Address => "address",
            Self::Snapshot => "snapshot",
            Self::AutoScalingGroup => "auto_scaling_group",
            Self::BatchComputeEnvironment => "batch_compute_environment",
            Self::BatchJobQueue => "batch_job_queue",
            Self::BatchJob => "batch_job",
            Self::EcsContainerInstance => "ecs_container_instance",
            Self::EcsTask => "ecs_task",
            Self::Usage => "usage",
            Self::Launch => "launch",
            Self::MachineType => "machine_type",
            Self::Protection => "protection",
        }
    }

    /// What one of it, and what several of it are called before people.
    #[must_use]
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Instance => ("instance", "instances"),
            Self::Volume => ("volume", "volumes"),
            Self::Address => ("address", "addresses"),
            Self::Snapshot => ("snapshot", "snapshots"),
            Self::AutoScalingGroup => ("Auto Scaling group", "Auto Scaling groups"),
            Self::BatchComputeEnvironment => ("Batch compute environment", "Batch compute environments"),
            Self::BatchJobQueue => ("Batch job queue", "Batch job queues"),
            Self::BatchJob => ("Batch job", "Batch jobs"),
            Self::EcsContainerInstance => ("ECS container instance", "ECS container instances"),
            Self::EcsTask => ("ECS task", "ECS tasks"),
            Self::Usage => ("machine's usage", "machines' usage"),
            Self::Launch => ("machine's launch", "machines' launches"),
            Self::MachineType => ("machine type", "machine types"),
            Self::Protection => ("machine's protection", "machines' protection"),
        }
    }

    /// Whether this provider is ever asked for it.
    #[must_use]
    pub const fn is_read_of(self, provider: Provider) -> bool {
        match self {
            Self::Snapshot
            | Self::BatchComputeEnvironment
            | Self::BatchJobQueue
            | Self::BatchJob
            | Self::EcsContainerInstance
            | Self::EcsTask
            | Self::Launch
            | Self::Protection => matches!(provider, Provider::Aws),
            Self::Instance
            | Self::Volume
            | Self::Address
            | Self::AutoScalingGroup
            | Self::Usage
            | Self::MachineType => true,
        }
    }

    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Instance,
        Self::Volume,
        Self::Address,
        Self::Snapshot,
        Self::AutoScalingGroup,
        Self::BatchComputeEnvironment,
        Self::BatchJobQueue,
        Self::BatchJob,
        Self::EcsContainerInstance,
        Self::EcsTask,
        Self::Usage,
        Self::Launch,
        Self::MachineType,
        Self::Protection,
    ];

    /// Whether it is a resource of its own, with a history, and not something that is told of machines.
    #[must_use]
    pub const fn is_resource(self) -> bool {
        !matches!(self, Self::Usage | Self::Launch | Self::MachineType | Self::Protection)
    }

    /// The kind that a word names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}
