//! What a provider says of a disk and of a copy of it, as far as it decides whether the disk may be deleted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::address::Told;

/// What EC2 says of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeFacts {
    /// For example `eu-central-1`.
    pub region: String,
    /// `vol-…`
    pub volume_id: String,
    /// The value of its `Name` tag.
    pub name: Option<String>,
    /// All its tags; none if they could not be read.
    pub tags: Option<BTreeMap<String, String>>,
    /// `available`, `in-use`, … in EC2's words; none if EC2 did not say.
    pub state: Option<String>,
    /// The machines that it is attached to.
    pub attached_to: Told,
    /// The service that EC2 names as its operator.
    pub service: Option<String>,
    /// Whether it is in the customer's own building.
    pub on_outpost: bool,
    /// The zone whose machines it can be attached to.
    pub zone: Option<String>,
    /// `gp3`, …; none if EC2 did not say.
    pub volume_type: Option<String>,
    /// What it holds, in GiB; none if EC2 did not say.
    pub size_gib: Option<u32>,
    /// Operations a second.
    pub iops: Option<u32>,
    /// In MiB a second.
    pub throughput_mib_per_s: Option<u32>,
    /// When it was made; none if EC2 did not say.
    pub created_at: Option<Timestamp>,
}

/// What EC2 says of a snapshot that was made for a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFacts {
    /// `snap-…`
    pub snapshot_id: String,
    /// Of which volume; none if EC2 did not say.
    pub volume_id: Option<String>,
    /// The volume's size then, in GiB; none if EC2 did not say.
    pub size_gib: Option<u32>,
    /// `pending`, `completed`, … in EC2's words; none if EC2 did not say.
    pub state: Option<String>,
    /// The moment that it is a copy of; none if EC2 did not say.
    pub started_at: Option<Timestamp>,
    /// The hash of the plan that it was made for, by its tag.
    pub plan: Option<String>,
}
