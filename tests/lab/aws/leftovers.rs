//! What outlives machines and what owns them, of the scenario's making: volumes, addresses, snapshots, groups.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::Moto;

/// A volume to make; if nothing else is said, one of 8 GiB and of type `gp3` that is attached to nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Volume {
    /// Of one that is there: only the state of its snapshots changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `gp3`, `io2`, …
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
    /// In GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_gib: Option<u32>,
    /// Operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<u32>,
    /// In MiB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<u32>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// `error`, …: another state than the one that its attachment gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The snapshot that it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The state of each snapshot that is made of it; `completed` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies_are: Option<String>,
    /// An instance's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_to: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_at: Option<Timestamp>,
    /// Whether it goes with the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An address to allocate; if nothing else is said, one that is tied to nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Address {
    /// The instance to tie it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `alb`, `rds`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_managed: Option<String>,
    /// The name that leads back from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse_name: Option<String>,
    /// The account that it has been offered to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_to: Option<String>,
    /// The customer's own range of addresses; Amazon's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// A snapshot to make.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Of which volume.
    pub volume: String,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The moment that it is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// `pending`, …: another state than `completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// `archive`, …: another place than `standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Another account than the one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name of an image of the account's that is made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// An Auto Scaling group to make, of instances that already run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Group {
    /// Its name, and that of its launch template.
    pub name: String,
    /// The least number of members.
    pub min: u32,
    /// The largest.
    pub max: u32,
    /// The number that it keeps up.
    pub desired: u32,
    /// Its members.
    pub members: Vec<Member>,
    /// Its own tags.
    pub tags: BTreeMap<String, String>,
    /// Whether its members have the tag that Auto Scaling gives them.
    pub tags_members: bool,
}

/// One machine of a group.
#[derive(Clone, Debug, Serialize)]
pub struct Member {
    /// The instance's id.
    pub id: String,
    /// `InService`, …
    pub lifecycle_state: String,
    /// `Healthy`, …
    pub health: String,
    /// From scale-in.
    pub protected: bool,
}

impl Member {
    /// A healthy one in service.
    #[must_use]
    pub fn of(id: &str) -> Self {
        Self { id: id.into(), lifecycle_state: "InService".into(), health: "Healthy".into(), protected: false }
    }
}

impl Moto {
    /// Makes volumes in a region and returns their ids, in the order asked for.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn volumes(&self, region: &str, volumes: &[Volume]) -> Vec<String> {
        self.made("volumes", json!({"region": region, "volumes": volumes})).await
    }

    /// Allocates addresses in a region and returns their allocation ids, in the order asked for.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn addresses(&self, region: &str, addresses: &[Address]) -> Vec<String> {
        self.made("addresses", json!({"region": region, "addresses": addresses})).await
    }

    /// Makes snapshots in a region and returns their ids, in the order asked for.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn snapshots(&self, region: &str, snapshots: &[Snapshot]) -> Vec<String> {
        self.made("snapshots", json!({"region": region, "snapshots": snapshots})).await
    }

    /// Makes Auto Scaling groups in a region; their instances get no tag from it.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn groups(&self, region: &str, groups: &[Group]) {
        self.made("groups", json!({"region": region, "groups": groups})).await;
    }

    /// Has the replacements of a group's instances be in these states, the newest first.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn refreshes(&self, region: &str, group: &str, states: &[&str]) {
        self.made("refreshes", json!({"region": region, "group": group, "states": states})).await;
    }
}
