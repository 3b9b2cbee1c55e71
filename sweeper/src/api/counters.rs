//! The counters of ingest and their exposition in the Prometheus text format.

use super::problem::Reason;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;

const STORED: &str = "heartbeats_stored_total";
const DUPLICATE: &str = "heartbeats_duplicate_total";
const LOST: &str = "heartbeats_lost_total";
const JOINED: &str = "nodes_joined_total";
const REFUSED: &str = "requests_refused_total";
const RULES_REFUSED: &str = "rules_refused_total";

static EXPOSITION: OnceLock<PrometheusHandle> = OnceLock::new();

/// Makes this process's counters visible at `/metrics`. Only the first call in a process has an effect.
pub fn install() {
    EXPOSITION.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::error!("another metrics recorder is in place; /metrics stays empty");
        }
        metrics::describe_counter!(STORED, "Heartbeats that were new and are stored.");
        metrics::describe_counter!(DUPLICATE, "Heartbeats that had been stored before.");
        metrics::describe_counter!(LOST, "Heartbeats that their sender gave up before they arrived.");
        metrics::describe_counter!(JOINED, "Nodes that exchanged the join token for a node token.");
        metrics::describe_counter!(REFUSED, "Requests that were refused, by reason.");
        metrics::describe_counter!(RULES_REFUSED, "Versions of the rules file that were refused.");
        for name in [STORED, DUPLICATE, LOST, JOINED, RULES_REFUSED] {
            metrics::counter!(name).increment(0);
        }
        handle
    });
}

pub(super) fn render() -> String {
    EXPOSITION.get().map_or_else(String::new, |handle| {
        handle.run_upkeep();
        handle.render()
    })
}

pub(crate) fn stored(stored: &crate::store::Stored) {
    metrics::counter!(STORED).increment(stored.stored.into());
    metrics::counter!(DUPLICATE).increment(stored.duplicates.into());
    metrics::counter!(LOST).increment(stored.lost);
}

pub(super) fn joined() {
    metrics::counter!(JOINED).increment(1);
}

pub(crate) fn rules_refused() {
    metrics::counter!(RULES_REFUSED).increment(1);
}

pub(super) fn refused(reason: Reason) {
    metrics::counter!(REFUSED, "reason" => reason.word()).increment(1);
}
