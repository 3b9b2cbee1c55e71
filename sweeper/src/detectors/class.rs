//! The classes of waste.

use serde::{Deserialize, Serialize};

/// A class of waste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An idle node, by its own agent.
    IdleNode,
    /// An instance without an agent that its provider saw do nothing. Weak evidence, never a plan.
    QuietInstance,
    /// A machine that works or waits, and whose GPUs nobody uses.
    IdleGpu,
    /// A machine that waits, and on which hardly anything happens. Never a plan.
    BarelyUsed,
    /// A machine that works, and rests in the same hours of each week.
    QuietHours,
    /// A volume that is attached to nothing.
    UnattachedVolume,
    /// A public address that is tied to nothing.
    UnusedAddress,
    /// A snapshot whose volume and images are gone.
    OrphanedSnapshot,
    /// An instance that is stopped, and whose volumes and addresses are billed on.
    StoppedInstance,
    /// A machine that runs and whose agent is heard no more.
    SilentAgent,
    /// A machine that AWS Batch started and that never joined its cluster.
    UnregisteredWorker,
    /// A machine that AWS Batch started for a compute environment that is gone.
    AbandonedWorker,
    /// An idle machine that AWS Batch should have ended.
    IdleWorker,
    /// A group that keeps machines up, each of which is idle.
    IdleGroup,
    /// A group that starts machines again and again that nobody uses.
    RelaunchingGroup,
    /// A queue of AWS Batch whose first job cannot be placed.
    BlockedQueue,
    /// A compute environment that keeps machines ready for queues without a job.
    HeldCapacity,
    /// A job of AWS Batch whose containers are gone.
    LostJob,
    /// A job that does not get beyond starting.
    StartingJob,
    /// The last child of an array, which runs for much longer than all others did.
    StragglingJob,
    /// A job of AWS Batch that runs on though the job that submitted it has failed.
    OrphanedJob,
    /// A job, or a task of a run, that makes no progress.
    StuckJob,
    /// A job, or a task of a run, that does nothing but compute.
    SpinningJob,
    /// A run whose tasks fail one after the other.
    FailingRun,
    /// A task that lives, though its run has ended.
    OrphanedTask,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::IdleNode,
        Self::QuietInstance,
        Self::IdleGpu,
        Self::BarelyUsed,
        Self::QuietHours,
        Self::UnattachedVolume,
        Self::UnusedAddress,
        Self::OrphanedSnapshot,
        Self::StoppedInstance,
        Self::SilentAgent,
        Self::UnregisteredWorker,
        Self::AbandonedWorker,
        Self::IdleWorker,
        Self::IdleGroup,
        Self::RelaunchingGroup,
        Self::BlockedQueue,
        Self::HeldCapacity,
        Self::LostJob,
        Self::StartingJob,
        Self::StragglingJob,
        Self::OrphanedJob,
        Self::StuckJob,
        Self::SpinningJob,
        Self::FailingRun,
        Self::OrphanedTask,
    ];

    /// The classes that say more of the same resource: while a finding of one of them is open, none of this class opens.
    #[must_use]
    pub fn yields_to(self) -> &'static [Self] {
        match self {
            // What its agent proved before it fell silent, or before something began to wait, stands.
            Self::QuietInstance | Self::BarelyUsed => &[Self::IdleNode],
            // What costs all hours of the week costs these, too.
            Self::QuietHours => &[Self::IdleNode, Self::BarelyUsed],
            // A machine that no job can reach is idle, and this says why.
            Self::IdleNode => &[Self::UnregisteredWorker, Self::AbandonedWorker, Self::IdleWorker],
            // That its environment is gone says why no cluster has it.
            Self::UnregisteredWorker => &[Self::AbandonedWorker],
            // A job whose containers are gone will not get beyond starting.
            Self::StartingJob => &[Self::LostJob],
            // That it does nothing says why it takes long.
            Self::StragglingJob => &[Self::StuckJob, Self::LostJob],
            _ => &[],
        }
    }

    /// What it is found on.
    #[must_use]
    pub fn found_on(self) -> FoundOn {
        match self {
            Self::IdleNode
            | Self::QuietInstance
            | Self::IdleGpu
            | Self::BarelyUsed
            | Self::QuietHours
            | Self::SilentAgent
            | Self::UnregisteredWorker
            | Self::AbandonedWorker
            | Self::IdleWorker => FoundOn::Machine,
            Self::UnattachedVolume | Self::UnusedAddress | Self::OrphanedSnapshot | Self::StoppedInstance => {
                FoundOn::Leftover
            }
            Self::IdleGroup | Self::RelaunchingGroup => FoundOn::Group,
            Self::BlockedQueue
            | Self::HeldCapacity
            | Self::LostJob
            | Self::StartingJob
            | Self::StragglingJob
            | Self::OrphanedJob => FoundOn::Batch,
            Self::StuckJob | Self::SpinningJob | Self::FailingRun | Self::OrphanedTask => FoundOn::Work,
        }
    }

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdleNode => "idle_node",
            Self::QuietInstance => "quiet_instance",
            Self::IdleGpu => "idle_gpu",
            Self::BarelyUsed => "barely_used",
            Self::QuietHours => "quiet_hours",
            Self::UnattachedVolume => "unattached_volume",
            Self::UnusedAddress => "unused_address",
            Self::OrphanedSnapshot => "orphaned_snapshot",
            Self::StoppedInstance => "stopped_instance",
            Self::SilentAgent => "silent_agent",
            Self::UnregisteredWorker => "unregistered_worker",
            Self::AbandonedWorker => "abandoned_worker",
            Self::IdleWorker => "idle_worker",
            Self::IdleGroup => "idle_group",
            Self::RelaunchingGroup => "relaunching_group",
            Self::BlockedQueue => "blocked_queue",
            Self::HeldCapacity => "held_capacity",
            Self::LostJob => "lost_job",
            Self::StartingJob => "starting_job",
            Self::StragglingJob => "straggling_job",
            Self::OrphanedJob => "orphaned_job",
            Self::StuckJob => "stuck_job",
            Self::SpinningJob => "spinning_job",
            Self::FailingRun => "failing_run",
            Self::OrphanedTask => "orphaned_task",
        }
    }

    /// The class of that name. A sweeper of the version before calls an idle node `idle_instance` where an inventory covers it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "idle_instance" { Self::IdleNode.as_str() } else { word };
        Self::ALL.into_iter().find(|class| class.as_str() == word)
    }
}

/// What a class is found on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundOn {
    /// Machines that run.
    Machine,
    /// What is billed though nobody uses it.
    Leftover,
    /// Groups that keep machines up.
    Group,
    /// Jobs, queues and compute environments of AWS Batch.
    Batch,
    /// Jobs of AWS Batch and tasks of runs, by what the agent sees of their processes.
    Work,
}
