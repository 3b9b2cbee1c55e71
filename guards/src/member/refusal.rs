//! Every reason not to end a member of a group that is not one not to touch a machine.

use serde::{Deserialize, Serialize};

/// Why a member of an Auto Scaling group is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "member", rename_all = "snake_case")]
pub enum MemberRefusal {
    /// It has been detached, moved or ended.
    #[error("the Auto Scaling group {group} does not list it as a member any more")]
    NotListed {
        /// As the plan has it.
        group: String,
    },
    /// Someone said never.
    #[error("its Auto Scaling group is exempt by the tag `{tag}`")]
    GroupExempt {
        /// The tag's name.
        tag: String,
    },
    /// It is on its way in or out, or set aside.
    #[error("its Auto Scaling group has it in the state `{state}`, not `InService`")]
    NotInService {
        /// In Auto Scaling's words.
        state: String,
    },
    /// Its group replaces it by itself.
    #[error("its Auto Scaling group holds it for `{health}`, not `Healthy`, and replaces it by itself")]
    NotHealthy {
        /// In Auto Scaling's words.
        health: String,
    },
    /// Someone said not this one.
    #[error("it is protected from scale-in, which is never switched off to get there")]
    ProtectedFromScaleIn,
    /// Ended machines may come back from it, and others are started from it.
    #[error("its Auto Scaling group keeps a warm pool, to which it may go back instead of ending")]
    WarmPool,
    /// One fewer is not one machine.
    #[error(
        "machines of its Auto Scaling group count for more or less than one, so that one fewer is another number of machines"
    )]
    Weighted,
    /// Its group may end another one to have its mix again.
    #[error(
        "its Auto Scaling group mixes types or ways to buy machines, and may end another one to have its mix again"
    )]
    Mixed,
    /// Somebody keeps the group from ending anything.
    #[error("its Auto Scaling group is kept from ending machines (`{process}` is suspended)")]
    Suspended {
        /// In Auto Scaling's words.
        process: String,
    },
    /// It, or another one, is about to go for another reason.
    #[error("its Auto Scaling group is changing: {what}")]
    Changing {
        /// What, in words.
        what: String,
    },
    /// One at a time.
    #[error("{other} of the same Auto Scaling group is being ended by another plan, or has just been")]
    EndingAnother {
        /// Which.
        other: String,
    },
    /// All are replaced one after the other.
    #[error("the machines of its Auto Scaling group are being replaced: {refresh}")]
    Refreshing {
        /// In Auto Scaling's words.
        refresh: String,
    },
    /// The group would start another one in its place.
    #[error("its Auto Scaling group keeps up {desired}, and its minimum is {min}: it does not go below that")]
    AtMinimum {
        /// So many it keeps up.
        desired: u32,
        /// So many at least.
        min: u32,
    },
    /// The group would end a machine elsewhere.
    #[error(
        "without it the zones of its Auto Scaling group would be out of balance, and the group may end another machine to balance them"
    )]
    Unbalanced,
}
