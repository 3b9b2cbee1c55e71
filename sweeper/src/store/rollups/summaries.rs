//! Hours of machines as wholes, without their workloads.

use super::{Activity, COMPRESSION_LEVEL, PackedRollup, Rollup, unpack};
use crate::{
    rollup::{Summary, Tier},
    store::{
        Doing as _, Store, StoreError,
        commit::{get, query},
        given::Column,
        to_unix_ms,
    },
};
use jiff::Timestamp;
use sea_orm::TransactionTrait as _;
use std::collections::BTreeMap;

/// An hour's summary as it is stored, or the rollup that one is made of: those that a version before 0035 made have none, and of one that such a version has made
/// anew since, what is kept is of other heartbeats.
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
        if nodes.is_empty() {
            return Ok(BTreeMap::new());
        }
        let body = "SELECT rollups.node_id AS node_id, start_unix_ms, heartbeats = summary_heartbeats AS is_summed_up, \
                    CASE WHEN heartbeats = summary_heartbeats THEN summary ELSE rollup END AS packed \
                    FROM given JOIN rollups ON rollups.node_id = given.node_id \
                    AND rollups.tier = given.tier AND start_unix_ms >= given.from_unix_ms AND start_unix_ms < given.to_unix_ms";
        let integers = |value| Column::Integer(vec![value; nodes.len()]);
        let columns = vec![
            ("node_id", Column::Text(nodes.to_vec())),
            ("tier", integers(Tier::Hour.number())),
            ("from_unix_ms", integers(to_unix_ms(from))),
            ("to_unix_ms", integers(to_unix_ms(to))),
        ];
        let transaction = self.connection.begin().await.doing("begin to read rollups")?;
        let rows = query(&transaction, columns, body, "read the hours of machines").await?;
        let hour = |row| {
            let packed: Vec<u8> = get(row, "packed")?;
            let is_summed_up = get::<Option<bool>>(row, "is_summed_up")? == Some(true);
            let packed = if is_summed_up { Packed::Summary(packed) } else { Packed::Rollup(PackedRollup(packed)) };
            Ok(((get(row, "node_id")?, get(row, "start_unix_ms")?), PackedSummary(packed)))
        };
        rows.iter().map(hour).collect()
    }
}
