//! Instances of EC2, as a scenario wants them.

use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// Instances to start, or what to change of one. What is left out stays as moto has it: a running on-demand Linux
/// instance on shared hardware with an EBS root volume and a lent public address.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Instance {
    /// For example `m5.large`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// So many alike, in one reservation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Tags, `Name` among them.
    pub tags: BTreeMap<String, String>,
    /// The last start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<Timestamp>,
    /// When the root volume was attached; if left out, the last start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_at: Option<Timestamp>,
    /// `running`, `stopped`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// `spot`, `capacity-block`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<String>,
    /// `RunInstances:0002`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_operation: Option<String>,
    /// `Linux/UNIX`, `Windows`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_details: Option<String>,
    /// `dedicated`, `host`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<String>,
    /// Stop protection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_api_stop: Option<bool>,
    /// Termination protection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_api_termination: Option<bool>,
    /// `instance-store`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_device_type: Option<String>,
    /// Whether it was set up to hibernate when it was launched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hibernates: Option<bool>,
}

impl Instance {
    /// An instance of this type with this `Name` tag.
    #[must_use]
    pub fn named(instance_type: &str, name: &str) -> Self {
        Self {
            instance_type: Some(instance_type.into()),
            tags: [("Name".to_owned(), name.to_owned())].into(),
            ..Self::default()
        }
    }
}
