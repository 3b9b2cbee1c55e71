//! A sweeper that asks no cloud and knows no price, and one node whose heartbeats are made up.

use heartbeat::{BootId, NodeId, wire};
use jiff::Timestamp;
use lab::{sample, sweeper::Sweeper};
use serde_json::Value;
use std::ops::RangeInclusive;
use sweeper::store::Store;

pub(crate) struct Site {
    pub(crate) sweeper: Sweeper,
    store: Store,
    node: NodeId,
    boot: BootId,
    _folder: tempfile::TempDir,
}

impl Site {
    pub(crate) async fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = format!("[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n[pricing]\nsource = \"none\"\n");
        let sweeper = Sweeper::prepare(&folder.path().join("sweeper"), &config, &[]);
        assert_eq!(sweeper.sweep().await.0, 0, "it makes the tables");
        let store = Store::connect(url).await.unwrap();
        Self { sweeper, store, node: sample::node(7), boot: sample::boot(1), _folder: folder }
    }

    /// Stores these heartbeats of the node, the newest of which ended just now.
    pub(crate) async fn report(&self, beats: RangeInclusive<u64>, beat: impl Fn(u64, Timestamp) -> wire::Heartbeat) {
        sample::report(&self.store, &self.node, self.boot, beats, beat).await;
    }

    /// The key of something on the node that no provider names.
    pub(crate) fn workload(&self, id: &str) -> String {
        format!("onprem:::workload/{}/{id}", self.node.to_string().replace("host:", ""))
    }
}

/// Findings of one class in a report.
pub(crate) fn of_class(report: &Value, class: &str) -> Vec<Value> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["class"] == class).cloned().collect()
}

/// The agent has observed the node since its first heartbeat.
pub(crate) fn observed_since_the_first(beat: &mut wire::Heartbeat) {
    let sequence = i64::try_from(beat.sequence).unwrap();
    let interval = beat.interval.as_mut().unwrap();
    interval.observed_since_unix_ms = interval.end_unix_ms - sequence * sample::INTERVAL_MS;
}
