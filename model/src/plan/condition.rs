//! What must hold right before a plan is carried out.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::job::{JobAttempt, JobPlace};

/// What must hold right before acting. Each is checked by the guard of its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum Condition {
    /// Its tags can be read, none of them exempts it, and it belongs to nothing larger.
    TagsPermit,
    /// The provider reports this state.
    StateIs {
        /// In the provider's words.
        state: String,
    },
    /// The machine has not been started again since.
    LaunchedAtIs {
        /// As the inventory had it.
        at: Timestamp,
    },
    /// The machine is still of this type.
    InstanceTypeIs {
        /// As the inventory had it.
        instance_type: String,
    },
    /// Neither stop protection nor termination protection is on. It is never switched off to get there.
    NotProtected,
    /// The machine has no instance-store disk that was written to since boot.
    NoInstanceStoreWrites,
    /// A live look at the node still says idle.
    StillIdle,
    /// The allocation still is of this public address.
    AddressIs {
        /// Dotted.
        address: String,
    },
    /// The address is tied to nothing, and no service, group of resources or other tool keeps it.
    TiedToNothing,
    /// Every list since then has shown it used by nothing.
    UnusedSince {
        /// As the finding had it.
        at: Timestamp,
    },
    /// No name is set that leads back from the address: whoever sets one sends mail with it.
    NoReverseName,
    /// The address has not been offered to another account.
    NotOffered,
    /// The volume still is as it was.
    VolumeIs {
        /// `gp3`, …
        volume_type: String,
        /// In GiB.
        size_gib: u32,
        /// When it was made.
        created_at: Timestamp,
    },
    /// A snapshot of the volume, begun for this plan once it was approved, is whole.
    SnapshotCompleted,
    /// It still is a member of this group, in service, healthy, and not protected from scale-in; and it belongs to nothing else.
    MemberOf {
        /// The group's name.
        group: String,
    },
    /// The group may keep up one machine fewer, and is changing in no other way: nothing but this machine ends.
    GroupCanShrink,
    /// The job still is in its queue, of its definition, and in its compute environment.
    JobPlaceIs {
        /// As the inventory had it.
        #[serde(flatten)]
        place: JobPlace,
    },
    /// The job still is in this attempt, on this machine.
    JobAttemptIs {
        /// As the inventory had it.
        #[serde(flatten)]
        attempt: JobAttempt,
    },
    /// No other job waits for its end.
    NothingDependsOnIt,
    /// Nothing of the job has run since then: every look at its machine up to a live one says so, without a time between that nobody saw.
    StillStuck {
        /// As the finding had it. One that begins anew behind a time that nobody saw has another.
        since: Timestamp,
    },
}
