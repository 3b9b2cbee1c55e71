//! When jobs, queues and machines of AWS Batch count as waste.

use super::duration;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[batch]`: what AWS Batch runs, keeps waiting and keeps ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// A queue whose first job has not been placed for so long is blocked, if Batch says why or no job of it runs.
    #[serde(with = "duration")]
    pub blocked_after: Duration,
    /// A job has so long to start.
    #[serde(with = "duration")]
    pub starting_after: Duration,
    /// A job whose task has stopped or is not known for so long is lost.
    #[serde(with = "duration")]
    pub lost_after: Duration,
    /// The last child of an array is no straggler before it has run for so long.
    #[serde(with = "duration")]
    pub straggling_after: Duration,
    /// An environment that keeps machines ready while no job has been there for so long holds capacity.
    #[serde(with = "duration")]
    pub held_after: Duration,
    /// A job whose head has failed so long ago is an orphan.
    #[serde(with = "duration")]
    pub orphaned_after: Duration,
    /// A machine has so long to boot and to register with its cluster.
    #[serde(with = "duration")]
    pub register_after: Duration,
    /// Batch has so long to end a machine that its environment keeps no longer.
    #[serde(with = "duration")]
    pub end_within: Duration,
}

impl Default for BatchConfig {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Self {
            blocked_after: minutes(60),
            starting_after: minutes(30),
            lost_after: minutes(10),
            straggling_after: minutes(60),
            held_after: minutes(60),
            orphaned_after: minutes(30),
            register_after: minutes(20),
            end_within: minutes(15),
        }
    }
}
