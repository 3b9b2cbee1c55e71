//! What people are told of actions on each kind of resource.

use model::{ResourceKind, plan::ActionClass};

/// The words for one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// What it is: `the machine`.
    pub(super) it: &'static str,
    /// What was done to it: `stopped`.
    pub(super) done: &'static str,
    /// Doing it: `stopping`.
    pub(super) doing: &'static str,
    /// Whose word was the last before the call.
    pub(super) last_said: &'static str,
}

impl Words {
    /// Those for what is done to a kind: of machines what nothing undoes is their end.
    pub(super) const fn of(kind: ResourceKind, class: ActionClass) -> Self {
        match (kind, class) {
            (ResourceKind::Address, _) => Self {
                it: "the address",
                done: "released",
                doing: "releasing",
                last_said: "what EC2 said of the address",
            },
            (ResourceKind::Volume, _) => {
                Self { it: "the volume", done: "deleted", doing: "deleting", last_said: "what EC2 said of the volume" }
            }
            (ResourceKind::BatchJob, _) => Self {
                it: "the job",
                done: "terminated",
                doing: "terminating",
                last_said: "the answer of its machine's agent",
            },
            (_, ActionClass::Destructive) => {
                Self { it: "the machine", done: "ended", doing: "ending", last_said: "the node's answer" }
            }
            (_, ActionClass::Reversible) => {
                Self { it: "the machine", done: "stopped", doing: "stopping", last_said: "the node's answer" }
            }
        }
    }
}
