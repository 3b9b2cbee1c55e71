//! Hours of machines as wholes, without their workloads.

use super::{Activity, COMPRESSION_LEVEL, NodeHours, PackedRollup, Rollup, unpack};
use crate::{
    rollup::{Summary, Tier},
    store::{Store, StoreError, commit::get},
};
use jiff::Timestamp;
use sea_orm::QueryResult;
use std::collections::BTreeMap;

/// Whether the summary is of the rollup beside it. A version before 0035 makes none, and leaves the one that is there when it makes an hour anew: mostly of more
/// heartbeats, and of as many where only what came before its first one has changed, or in a flood.
const IS_SUMMED_UP: &str = "heartbeats = summary_heartbeats AND length(rollup) = summary_of_bytes";

/// An hour's summary as it is stored, or the rollup that one is made of where there is none of it.
#[derive(Clone, Debug)]
pub struct PackedSummary(Packed);

#[derive(Clone, Debug)]
enum Packed {
    Summary(Vec<u8>),
    Rollup(PackedRollup),
}

/// A rollup without its workloads, runs, tasks and tools.
#[derive(serde::Deserialize)]
struct NodeAlone {
    node: Activity,
}

impl PackedSummary {
    /// What the machine did.
    ///
    /// # Errors
    /// If it is damaged, or of a later version.
    pub fn unpack(&self) -> std::io::Result<Summary> {
        match &self.0 {
            Packed::Summary(packed) => unpack(packed),
            Packed::Rollup(packed) => packed.unpack().map(|rollup| Summary::from(&rollup)),
        }
    }

    /// The same without what is told of all workloads together.
    pub(super) fn node(&self) -> std::io::Result<Activity> {
        let (Packed::Summary(packed) | Packed::Rollup(PackedRollup(packed))) = &self.0;
        let NodeAlone { node } = unpack(packed)?;
        Ok(node)
    }
}

/// That of an hour; empty of five minutes, whose own nobody asks for.
pub(super) fn pack(tier: Tier, rollup: &Rollup) -> std::io::Result<Vec<u8>> {
    match tier {
        Tier::Hour => zstd::bulk::compress(&serde_json::to_vec(&Summary::from(rollup))?, COMPRESSION_LEVEL),
        Tier::FiveMinutes => Ok(Vec::new()),
    }
}

impl Store {
    /// The hours of several machines (at most 1,000) that begin from `from` on and before `to`, by node and begin; each is unpacked where it is used.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn packed_summaries(
        &self,
        nodes: &[String],
        from: Timestamp,
        to: Timestamp,
    ) -> Result<BTreeMap<(String, i64), PackedSummary>, StoreError> {
        let selected = format!(
            "({IS_SUMMED_UP}) AS is_summed_up, CASE WHEN {IS_SUMMED_UP} THEN summary ELSE rollup END AS packed"
        );
        let take = |row: &QueryResult| {
            let packed: Vec<u8> = get(row, "packed")?;
            let is_summed_up = get::<Option<bool>>(row, "is_summed_up")? == Some(true);
            let packed = if is_summed_up { Packed::Summary(packed) } else { Packed::Rollup(PackedRollup(packed)) };
            Ok(PackedSummary(packed))
        };
        let asked: Vec<_> = nodes.iter().map(|node| NodeHours { node: node.clone(), from, to }).collect();
        self.each_hour(&asked, &selected, take).await
    }
}
