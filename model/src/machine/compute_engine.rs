//! What Google Cloud says of a machine of Compute Engine, as far as it decides what may be done to it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Lifecycle, PublicIpv4};
use crate::address::Told;

/// What Google says of an instance.
/// <https://cloud.google.com/compute/docs/reference/rest/v1/instances>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeEngineFacts {
    /// Its id.
    pub project: String,
    /// For example `europe-west3-a`.
    pub zone: String,
    /// Its number: a name comes again, a number does not.
    pub number: String,
    /// What people call it.
    pub name: Option<String>,
    /// For example `n2-standard-8`; none if Google did not say.
    pub machine_type: Option<String>,
    /// `running`, `stopped`, … in the inventory's words; none if Google did not say.
    pub state: Option<String>,
    /// The last start; none if Google did not say.
    pub started_at: Option<Timestamp>,
    /// How it was bought.
    pub lifecycle: Lifecycle,
    /// What ends or deletes it at a time of its own, in words; none if nothing does.
    pub ends_by: Option<String>,
    /// The reservation that it consumes and no other; none if it names none.
    pub reservation: Option<String>,
    /// Whether it asks for a host of its own by its affinities.
    pub is_on_own_host: bool,
    /// So many of its disks are of the host: what is on them ends with a stop.
    pub local_ssds: u32,
    /// Whether a disk of it is encrypted by a key that Google does not keep: whoever starts it must bring that.
    pub needs_key: bool,
    /// Whether deleting it is refused; none if Google did not say.
    pub deletion_protection: Option<bool>,
    /// Policies that are attached to it, by their names: a schedule that starts and stops it is one.
    pub resource_policies: Vec<String>,
    /// All its labels; none if they could not be read.
    pub labels: Option<BTreeMap<String, String>>,
    /// What made it, as its metadata say: the path of a managed instance group.
    pub created_by: Option<String>,
    /// The attached disks, by their names.
    pub disks: Vec<String>,
    /// The public IPv4 addresses of all its interfaces.
    pub public_ipv4: Vec<PublicIpv4>,
    /// Groups that have it as a member, by Google's own list of what refers to it. It is asked right before the call.
    pub groups: Told,
}
