//! Every reason not to touch a machine.

use jiff::Timestamp;
use model::machine::Owner;
use serde::{Deserialize, Serialize};

/// Why a machine is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// An unread tag may be an exemption.
    #[error("its tags could not be read, and one of them may exempt it")]
    TagsUnreadable,
    /// Someone said never.
    #[error("it is exempt by the tag `{tag}`")]
    Exempt {
        /// The tag's name.
        tag: String,
    },
    /// It is not its own master.
    #[error("it belongs to something larger, {owner}, which decides how many machines it keeps")]
    MemberOf {
        /// What it belongs to.
        owner: Owner,
    },
    /// A group that could not be read may replace it.
    #[error("the Auto Scaling groups could not be read, and one of them may keep it up")]
    GroupsUnreadable,
    /// A scheduler that could not be read may have placed work on it.
    #[error("ECS and AWS Batch could not be read, and one of them may place work on it: {why}")]
    SchedulersUnreadable {
        /// The call and what it was refused with.
        why: String,
    },
    /// Someone said not this one.
    #[error("it is under {by}, which is never switched off to get there")]
    Protected {
        /// Which.
        by: String,
    },
    /// Someone may have said not this one.
    #[error("whether it is protected could not be read (ec2:DescribeInstanceAttribute)")]
    ProtectionUnreadable,
    /// The same, for as long as others are asked about first.
    #[error(
        "whether it is protected is not known yet: other machines were asked about first (ec2:DescribeInstanceAttribute)"
    )]
    ProtectionNotYetKnown,
    /// EC2 left out a fact that the plan depends on.
    #[error("EC2 did not say its {fact}")]
    FactUnknown {
        /// Which.
        fact: String,
    },
    /// There is nothing to stop.
    #[error("its state is `{state}`, not `running`")]
    NotRunning {
        /// In EC2's words.
        state: String,
    },
    /// Only a persistent request survives a stop.
    #[error("it is a Spot instance, and a one-time request cannot be stopped, only ended")]
    Spot,
    /// A stop saves nothing.
    #[error("it is a capacity block, which is paid in advance")]
    CapacityBlock,
    /// A stop saves nothing.
    #[error("it runs in the capacity reservation {id}, which is billed whether or not a machine runs in it")]
    CapacityReserved {
        /// Which.
        id: String,
    },
    /// Bought in a way that nothing here knows.
    #[error("it was bought in a way that this rule does not know: `{lifecycle}`")]
    LifecycleNotKnown {
        /// In EC2's words.
        lifecycle: String,
    },
    /// It cannot be stopped.
    #[error("its root is an instance-store disk: it cannot be stopped, only ended with all its data")]
    InstanceStoreRoot,
    /// A stop may destroy data.
    #[error("it has instance-store disks, whose data would be lost")]
    HasInstanceStore,
    /// Somebody has done something with it since the plan was made.
    #[error("its state was `{was}` when the plan was made, and is `{is}`")]
    StateChanged {
        /// In EC2's words.
        was: String,
        /// In EC2's words.
        is: String,
    },
    /// It has been started again: what runs on it is something else.
    #[error("it was started at {was} when the plan was made, and again at {is}")]
    StartedAgain {
        /// Then.
        was: Timestamp,
        /// Now.
        is: Timestamp,
    },
    /// It is another machine by now: somebody has changed it.
    #[error("it was a {was} when the plan was made, and is a {is}")]
    TypeChanged {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
}

/// A fact that a guard needs and EC2 did not tell.
pub(crate) fn missing(fact: &str) -> Refusal {
    Refusal::FactUnknown { fact: fact.to_owned() }
}
