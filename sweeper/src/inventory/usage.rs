//! What a provider measured of a machine from outside.

use super::ResourceId;
use jiff::Timestamp;
use serde::Serialize;

/// How busy a machine was, as its provider saw it. **Weak evidence**: it tells neither who worked nor on what, misses what lies
/// between its points, and a machine that waits for something looks like one that nobody needs. It may raise a finding,
/// never an action, and says nothing about a machine whose agent reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Of which machine.
    pub id: ResourceId,
    /// Who measured.
    pub source: UsageSource,
    /// The first moment that was asked for.
    pub from: Timestamp,
    /// The last one.
    pub until: Timestamp,
    /// Length of the periods that each point is about, in seconds.
    pub period_s: u32,
    /// So many periods have a point of every metric that is given here; a machine that was stopped has fewer than fit in.
    pub periods: u32,
    /// The highest mean of a period over all processors, in millionths of what the machine has.
    pub busiest_cpu_millionths: Option<u32>,
    /// The highest mean of a period, both directions and all interfaces together, in bytes a second.
    pub busiest_network_bytes_per_s: Option<u64>,
}

/// Whose measurements these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// AWS.
    CloudWatch,
    /// Google Cloud.
    CloudMonitoring,
}
