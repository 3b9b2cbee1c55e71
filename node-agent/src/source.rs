//! Where heartbeats come from, as the uplink sees it.
//!
//! The uplink asks once per interval and gives each heartbeat its sequence; what a heartbeat holds is none of its
//! business. The collector is the one real source; tests bring canned heartbeats.

use heartbeat::wire;

/// Gives one heartbeat per call; the time between two calls is the interval that the heartbeat speaks about.
///
/// What only the uplink knows is left to it: `sequence` is 0, and `AgentCost.spooled_heartbeats`,
/// `AgentCost.spool_dropped_heartbeats` and `HostCounters.own_network_…` are absent.
pub trait Source: Send {
    /// Reads the counters now.
    ///
    /// # Errors
    /// If not even the host's own books can be read. What a single probe cannot measure is no error: coverage says it.
    fn next(&mut self) -> anyhow::Result<wire::Heartbeat>;
}
