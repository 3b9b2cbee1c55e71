//! One sample of everything, as plain data.

use crate::{
    coverage::Capabilities,
    host::{
        cgroup_usage::Usage, counters::HostCounters, facts::Facts, runtime::report::Container, shipped::Existing,
        signals::Seen,
    },
    model::{Measured, Moment},
    workload::{Class, Names, Rows, runs::Runs},
};
use heartbeat::wire;
use std::{collections::BTreeMap, time::Duration};

/// One sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When it was taken.
    pub taken: Moment,
    /// When the rows' counters were zero; also since when this agent process observes.
    pub counters_since: Moment,
    /// Length of the interval in force: the configured one, or twice that where the budget asks for it.
    pub interval: Duration,
    /// What the host is.
    pub facts: Facts,
    /// The host's counters.
    pub host: HostCounters,
    /// The host's GPUs, interactive sessions and inbound peers.
    pub signals: Seen,
    /// The workloads' counters.
    pub rows: Rows,
    /// What the controllers say of the cgroup of a row.
    pub cgroups: BTreeMap<(Class, String), Usage>,
    /// Which timers and crontabs exist.
    pub schedules: Existing,
    /// What the rows' keys mean.
    pub names: Names,
    /// What is told of the containers that rows stand for, by the rows' keys.
    pub containers: BTreeMap<String, Container>,
    /// Runs of pipelines: another view of the same counters.
    pub runs: Runs,
    /// Version of the rules that sorted the rows.
    pub rules_version: String,
    /// [`digest`](crate::rules::digest) of the rules that sorted the rows.
    pub rules_digest: String,
    /// Which columns of the rows hold a measurement.
    pub measured: Measured,
    /// Where the rows come from.
    pub source: wire::Source,
    /// A verdict for each capability.
    pub capabilities: Capabilities,
    /// What was lost since `counters_since`, by name.
    pub drops: Vec<(&'static str, u64)>,
    /// What the programs inside the kernel cost since they were loaded: nanoseconds, and runs.
    pub programs: Option<(u64, u64)>,
}
