//! A disk as its provider describes it.

use model::{ResourceKey, address::Told, volume::VolumeFacts};
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{GoogleDisk, words::open_words};

/// What its provider says of one disk; EC2's words stand for those of others where they mean the same. A fact that the provider
/// left out is `None`, never a default.
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Volume.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The resource key; it ends in `vol-…`, or in the name of a Google disk.
    pub id: ResourceKey,
    /// `gp3`, `io2`, `st1`, …: each has prices of its own.
    pub volume_type: Option<String>,
    /// What it holds and is billed for, in GiB.
    pub size_gib: Option<u32>,
    /// Operations a second: what is provisioned and, for most types, billed; for `gp2` what its size gives. Some types have none.
    pub iops: Option<u32>,
    /// Provisioned throughput in MiB a second; only some types have one.
    pub throughput_mib_per_s: Option<u32>,
    /// What EC2 last knew it to do.
    pub state: Option<VolumeState>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// For example `eu-central-1a`: the only zone whose machines it can be attached to.
    pub availability_zone: Option<String>,
    /// What it is attached to, several machines where the type allows it. `None`: EC2 did not say, so it may be attached.
    pub attachments: Option<Vec<VolumeAttachment>>,
    /// The snapshot that it was made from.
    pub snapshot_id: Option<String>,
    /// The AWS service that EC2 names as its operator: only that service may change it.
    pub operator: Option<String>,
    /// True for a volume in the customer's own building (AWS Outposts), which is not billed by the GiB.
    pub on_outpost: bool,
    /// All tags; EC2 returns them with the volume or not the volume at all.
    pub tags: BTreeMap<String, String>,
    /// What only Google says of a disk; none for one of EC2's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub google: Option<Box<GoogleDisk>>,
}

impl Volume {
    /// What the rule and the guards of deletions look at; none for a disk of another provider than EC2.
    #[must_use]
    pub fn delete_facts(&self) -> Option<VolumeFacts> {
        if self.google.is_some() {
            return None;
        }
        let attached_to = match &self.attachments {
            Some(all) if all.is_empty() => Told::Nothing,
            Some(all) => {
                let ids = all.iter().map(|one| one.instance_id.as_deref().unwrap_or("a machine"));
                Told::Something { what: ids.collect::<Vec<_>>().join(", ") }
            }
            None => Told::Unknown { why: "EC2 did not say".to_owned() },
        };
        Some(VolumeFacts {
            region: self.id.location.clone(),
            volume_id: self.id.id.clone(),
            name: super::tags::name(&self.tags),
            tags: Some(self.tags.clone()),
            state: self.state.as_ref().map(ToString::to_string),
            attached_to,
            service: self.operator.clone(),
            on_outpost: self.on_outpost,
            zone: self.availability_zone.clone(),
            volume_type: self.volume_type.clone(),
            size_gib: self.size_gib,
            iops: self.iops,
            throughput_mib_per_s: self.throughput_mib_per_s,
            created_at: self.created_at,
        })
    }
}

/// A volume's tie to one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// `i-…`; none where a service attached it to a machine of its own.
    pub instance_id: Option<String>,
    /// What the machine knows it by, for example `/dev/xvdf`.
    pub device: Option<String>,
    /// `attached`, `detaching`, `busy`, …: in EC2's words.
    pub state: Option<String>,
    /// Whether it goes with the machine.
    pub delete_on_termination: Option<bool>,
    /// Since when.
    pub attached_at: Option<Timestamp>,
}

open_words! {
    /// EC2's state of a volume.
    VolumeState {
        /// Being made.
        Creating = "creating",
        /// Attached to nothing, and billed.
        Available = "available",
        /// Attached to a machine, whether that runs or not.
        InUse = "in-use",
        /// Going.
        Deleting = "deleting",
        /// Gone.
        Deleted = "deleted",
        /// Broken.
        Error = "error",
    }
}
