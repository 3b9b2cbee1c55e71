//! What stands between a plan and a resource: a file per guard, each saying what it refuses and why. Pure: no input or output, no clock, no SDK.
//!
//! A guard that does not know refuses. The same guards are asked when a plan is made, when it is approved, and once more right before the provider is called:
//! what was true a minute ago is no reason to act now.

pub mod act;
pub mod action;
mod address;
mod capacity;
mod compute_engine;
mod exemption;
mod instance_store;
mod job;
mod managed;
mod member;
mod membership;
pub mod policy;
mod protection;
mod purchase;
mod refusal;
mod root;
mod same;
mod state;
mod unused;
mod volume;

pub use address::may_release;
pub use compute_engine::{EXEMPTION_LABEL, may_stop_compute_engine};
pub use exemption::EXEMPTION_TAG;
pub use job::{JobRefusal, may_terminate};
pub use member::{MemberRefusal, may_end};
pub use refusal::Refusal;
pub use volume::may_delete;

use model::{machine::Ec2Facts, plan::Condition};

/// One question about a machine.
type Guard = fn(&Ec2Facts) -> Result<(), Refusal>;

/// The guards of what a machine is, the most fundamental first: the first one that refuses gives the reason.
const STOP: [Guard; 8] = [
    exemption::guard,
    membership::guard,
    protection::guard,
    state::guard,
    purchase::guard,
    capacity::guard,
    root::guard,
    instance_store::guard,
];

/// Whether a machine may be stopped, by what its provider says of it.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn may_stop(facts: &Ec2Facts) -> Result<(), Refusal> {
    STOP.iter().try_for_each(|guard| guard(facts))
}

/// Whether a condition of a plan holds, by what the provider says of the machine now. That its node is still idle nobody but the node tells: a live look
/// is another guard's.
///
/// # Errors
/// The guard of the condition's name refuses, and says why.
pub fn holds(condition: &Condition, facts: &Ec2Facts) -> Result<(), Refusal> {
    match condition {
        Condition::TagsPermit => exemption::guard(facts).and_then(|()| membership::guard(facts)),
        Condition::StateIs { state } => same::state(state, facts),
        Condition::LaunchedAtIs { at } => same::launched_at(*at, facts),
        Condition::InstanceTypeIs { instance_type } => same::instance_type(instance_type, facts),
        Condition::NotProtected => protection::guard(facts),
        Condition::NoInstanceStoreWrites => instance_store::none(facts),
        Condition::StillIdle => Ok(()),
        Condition::AddressIs { .. }
        | Condition::TiedToNothing
        | Condition::UnusedSince { .. }
        | Condition::NoReverseName
        | Condition::NotOffered
        | Condition::VolumeIs { .. }
        | Condition::SnapshotCompleted
        | Condition::MemberOf { .. }
        | Condition::GroupCanShrink
        | Condition::JobPlaceIs { .. }
        | Condition::JobAttemptIs { .. }
        | Condition::NothingDependsOnIt
        | Condition::StillStuck { .. } => Err(Refusal::OfAnotherKind),
    }
}

#[cfg(test)]
mod sample;
