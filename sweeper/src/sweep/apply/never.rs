//! Of which classes no plan is made, and why. Each class is named: one that is added says of itself whether a machine may be stopped for it.

use crate::detectors::Class;
use model::{Provider, ResourceKey, ResourceKind};

/// Why no plan is made of what is no machine, whatever its class.
pub(super) const NO_MACHINE: &str = "plans are made of machines, addresses, volumes and stuck jobs of AWS Batch alone";

/// Why no plan is made of what a provider saw.
const WEAK: &str = "only its provider's metrics say so, which is weak evidence: it raises a finding and never an action; \
                    an agent on the machine would tell";

/// Why no plan is made of what nothing uses.
const LEFT: &str =
    "no plan deletes a snapshot or ends a machine that is stopped: what is on them may be wanted; decide by hand";

/// Why no plan is made of what nothing uses at Google.
pub(super) const NOT_EC2: &str =
    "no plan releases or deletes anything of Google Cloud yet: others may know or want it; decide by hand";

/// Why no plan is made of a machine whose GPUs alone are idle.
const UNUSED: &str = "the machine works or waits: see whether its work needs a GPU, or has lost it";

/// Why no plan is made of a machine that is barely used.
const BARELY: &str = "something outside will wake it, so nobody stops it: move what waits to a smaller machine, or onto one that others use, or start it by a schedule";

/// Why no plan is made of a machine that rests in the same hours of each week.
const HOURS: &str =
    "no plan makes a schedule yet: stop it in these hours by one of your own, once you know that nobody needs it then";

/// Why no plan is made of a machine whose agent is silent.
const SILENT: &str = "nobody knows what it does since its agent fell silent: start the agent again (`node-agent doctor` on the machine says what it lacks)";

/// Why no plan is made of a group.
const GROUP: &str = "no plan changes a group as a whole (where `act.end_members` is on, its idle machines are planned one by one): lower its least and its desired size by hand, once you know that nobody needs its machines; one that is ended alone is replaced";

/// Why no plan is made of a launch template.
const TEMPLATE: &str = "no plan changes what starts machines from a launch template: each of them says who launched it, as far as that is known; ask there";

/// Why no plan is made of what is AWS Batch's.
const BATCH: &str = "no plan changes AWS Batch yet: end the job, disable the queue or lower minvCpus by hand, once you know why it is so";

/// Why no plan is made of a machine whose compute environment is gone.
const ABANDONED: &str = "no plan ends a machine of AWS Batch yet: end it by hand, once you know that nothing runs on it that somebody needs; Batch will not";

/// Why no plan is made of work that is stuck.
const STUCK: &str = "no plan ends a run, a task or a pod: look at what it waits for (`/proc/PID/wchan` and `/proc/PID/stack` of its processes), and end it by hand";

/// Why no plan is made of a job that is stuck.
pub(super) const STUCK_JOB: &str = "no plan ends a job of AWS Batch where `act.terminate_jobs` is off: look at what it waits for (`/proc/PID/wchan` and `/proc/PID/stack` of its processes), and end it by hand";

/// Why no plan is made of work that only computes.
const SPINS: &str = "it loops or it computes, and nobody can tell from outside: look where it is (`perf top -p PID`, or a stack of it), and end it by hand once you know";

/// Why no plan is made of a task that has outlived its run.
const ORPHANED: &str =
    "no plan ends a single process yet: end it by hand, unless its run left it behind on purpose, as a server is";

/// Why no plan is made of a class on such a resource; none of those that plans are made of.
pub(super) const fn never(class: Class, on: &ResourceKey) -> Option<&'static str> {
    match class {
        Class::IdleNode => None,
        Class::QuietInstance => Some(WEAK),
        Class::IdleGpu => Some(UNUSED),
        Class::BarelyUsed => Some(BARELY),
        Class::QuietHours => Some(HOURS),
        Class::SilentAgent => Some(SILENT),
        Class::UnusedAddress | Class::UnattachedVolume if matches!(on.provider, Provider::Aws) => None,
        Class::UnusedAddress | Class::UnattachedVolume => Some(NOT_EC2),
        Class::OrphanedSnapshot | Class::StoppedInstance => Some(LEFT),
        Class::RelaunchingGroup if matches!(on.kind, ResourceKind::LaunchTemplate) => Some(TEMPLATE),
        Class::IdleGroup | Class::RelaunchingGroup => Some(GROUP),
        Class::AbandonedWorker => Some(ABANDONED),
        Class::UnregisteredWorker
        | Class::IdleWorker
        | Class::BlockedQueue
        | Class::HeldCapacity
        | Class::LostJob
        | Class::StartingJob
        | Class::StragglingJob
        | Class::OrphanedJob => Some(BATCH),
        Class::StuckJob if matches!(on.kind, ResourceKind::BatchJob) => None,
        Class::StuckJob | Class::FailingRun => Some(STUCK),
        Class::SpinningJob => Some(SPINS),
        Class::OrphanedTask => Some(ORPHANED),
    }
}
