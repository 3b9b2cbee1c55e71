//! Facts that only Google Cloud tells. A fact that it left out is `None`, never a default.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What only Google says of an instance.
/// <https://cloud.google.com/compute/docs/reference/rest/v1/instances>
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleInstance {
    /// Google's own word for what it does: `STOPPED` and `TERMINATED` both mean stopped.
    pub status: Option<String>,
    /// When it was made, whatever was started since.
    pub created_at: Option<Timestamp>,
    /// When it last stopped.
    pub stopped_at: Option<Timestamp>,
    /// When it was last suspended.
    pub suspended_at: Option<Timestamp>,
    /// How it was bought, in Google's words: `STANDARD`, `SPOT`, `FLEX_START`, …
    pub provisioning_model: Option<String>,
    /// The older form of Spot, which ends after 24 hours.
    pub preemptible: Option<bool>,
    /// Whether it is deleted when Google takes it back or its time is over: `STOP` or `DELETE`.
    pub termination_action: Option<String>,
    /// Whether deleting it is refused; stopping it is not.
    pub deletion_protection: Option<bool>,
    /// So many of its disks are of the host: what is on them ends with a stop.
    pub local_ssds: u32,
    /// What made it, as its metadata say: the path of a managed instance group. It stays where the group has let it go.
    pub created_by: Option<String>,
    /// The reservation that it consumes and no other, by its name; none if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// When it ends or is deleted by itself, in Google's words; none if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_by: Option<String>,
    /// Policies that are attached to it, by their names; a schedule is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_policies: Vec<String>,
    /// Whether a disk of it, or itself, is encrypted by a key that Google does not keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_key: bool,
    /// Accelerators that were added to its type.
    pub accelerators: Vec<Accelerators>,
    /// What else Google bills it for; none in records of versions that did not read that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<Billed>,
    /// What its type has; none if that could not be read.
    pub shape: Option<MachineShape>,
}

/// What a machine of Google's is billed for beside its type and its accelerators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// The licences of its disks, each once, as `PROJECT/NAME`: `rhel-cloud/rhel-9-server`.
    pub licenses: Vec<String>,
    /// What its disks of the host hold together; none if Google did not say it of one.
    pub local_ssd_gib: Option<u64>,
    /// Whether its memory is encrypted (Confidential Computing).
    pub confidential: bool,
    /// Its network's tier, if it was given one: `TIER_1`, `DEFAULT`.
    pub network_tier: Option<String>,
}

/// What a machine of a type has.
/// <https://cloud.google.com/compute/docs/reference/rest/v1/machineTypes>
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineShape {
    /// Virtual processors.
    pub vcpus: Option<u32>,
    /// In MiB.
    pub memory_mib: Option<u32>,
    /// Whether its processors are shared with others.
    pub shared_cpu: Option<bool>,
    /// So many disks of the host come with each machine of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_ssds: Option<u32>,
    /// Accelerators that each machine of the type has.
    pub accelerators: Vec<Accelerators>,
}

/// Accelerators of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Accelerators {
    /// For example `nvidia-l4`.
    pub kind: Option<String>,
    /// So many.
    pub count: Option<u32>,
}

/// What only Google says of a disk.
/// <https://cloud.google.com/compute/docs/reference/rest/v1/disks>
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleDisk {
    /// Its number: a name comes again, a number does not.
    pub number: Option<u64>,
    /// The last time that it was attached to something.
    pub last_attached_at: Option<Timestamp>,
    /// The last time that it was detached; none for a disk that never was.
    pub last_detached_at: Option<Timestamp>,
    /// The zones of a regional disk, which is billed in each.
    pub replica_zones: Vec<String>,
}

/// What only Google says of an address.
/// <https://cloud.google.com/compute/docs/reference/rest/v1/addresses>
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleAddress {
    /// Its number: a name comes again, a number does not.
    pub number: Option<u64>,
    /// `RESERVED` is tied to nothing and billed, `IN_USE` is tied; none or another word is not known.
    pub status: Option<String>,
    /// When it was reserved.
    pub created_at: Option<Timestamp>,
    /// What it may be used for alone, such as `NAT_AUTO`: then only that service may release it.
    pub purpose: Option<String>,
    /// `PREMIUM` or `STANDARD`: each has prices of its own.
    pub network_tier: Option<String>,
    /// What it is tied to, as paths without the project.
    pub users: Vec<String>,
}
