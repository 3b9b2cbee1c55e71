//! Heartbeats as rows: packed alone, so that each can be read alone.

pub(super) mod columns;

use super::{Doing as _, Store, StoreError, corrupt, entities::heartbeat as row, to_unix_ms};
use crate::verdict::NodeSample;
use heartbeat::{
    BootId, NodeId,
    wire::{Heartbeat, Source},
};
use jiff::Timestamp;
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _, Select};

/// One heartbeat as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHeartbeat {
    /// The boot that it speaks of.
    pub boot_id: BootId,
    /// The message.
    pub heartbeat: Heartbeat,
}

impl Store {
    /// A node's heartbeats whose interval ended from `from` on and before `to`, in the order of their ends.
    ///
    /// # Errors
    /// If the database does not answer or a stored message is damaged.
    pub async fn heartbeats(
        &self,
        node_id: &NodeId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<StoredHeartbeat>, StoreError> {
        let rows: Vec<Columns> = of_node(node_id, from, to)
            .order_by_asc(row::Column::EndUnixMs)
            .order_by_asc(row::Column::EndBoottimeNs)
            .into_tuple()
            .all(&self.connection)
            .await
            .doing("read heartbeats")?;
        rows.into_iter().map(|columns| unpack(node_id, columns)).collect()
    }

    /// A node's newest heartbeat whose interval ended from `from` on and before `to`.
    ///
    /// # Errors
    /// As [`Store::heartbeats`].
    pub async fn newest_heartbeat(
        &self,
        node_id: &NodeId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<StoredHeartbeat>, StoreError> {
        let columns: Option<Columns> = of_node(node_id, from, to)
            .order_by_desc(row::Column::EndUnixMs)
            .order_by_desc(row::Column::EndBoottimeNs)
            .into_tuple()
            .one(&self.connection)
            .await
            .doing("read a node's newest heartbeat")?;
        columns.map(|columns| unpack(node_id, columns)).transpose()
    }
}

/// Boot, sequence and message of one.
pub(super) type Columns = (String, i64, Vec<u8>);

fn of_node(node_id: &NodeId, from: Timestamp, to: Timestamp) -> Select<row::Entity> {
    row::Entity::find()
        .select_only()
        .columns([row::Column::BootId, row::Column::Sequence, row::Column::Message])
        .filter(row::Column::NodeId.eq(node_id.to_string()))
        .filter(row::Column::EndUnixMs.gte(to_unix_ms(from)))
        .filter(row::Column::EndUnixMs.lt(to_unix_ms(to)))
}

pub(super) fn unpack(node_id: &NodeId, (boot_id, sequence, message): Columns) -> Result<StoredHeartbeat, StoreError> {
    let damaged = |reason: String| corrupt(format!("heartbeat {sequence} of {node_id}"), reason);
    Ok(StoredHeartbeat {
        boot_id: boot_id.parse().map_err(|error: heartbeat::IdentityError| damaged(error.to_string()))?,
        heartbeat: heartbeat::unpack_one(&message).map_err(|error| damaged(error.to_string()))?,
    })
}

/// One heartbeat as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) sequence: i64,
    pub(super) start_unix_ms: i64,
    pub(super) end_unix_ms: i64,
    pub(super) start_boottime_ns: i64,
    pub(super) end_boottime_ns: i64,
    pub(super) counters_since_boottime_ns: i64,
    pub(super) source: &'static str,
    /// In the order of [`columns::COLUMNS`].
    pub(super) columns: [i64; columns::COLUMNS.len()],
    pub(super) message: Vec<u8>,
    /// What it tells of its node.
    pub(super) sample: Option<NodeSample>,
}

/// Packs one heartbeat.
pub(super) fn pack(boot_id: BootId, heartbeat: &Heartbeat) -> Result<Row, StoreError> {
    let message =
        heartbeat::pack_one(heartbeat).map_err(|error| corrupt("a heartbeat that was to be stored", error))?;
    // `Checked` vouches for an interval and for numbers that fit.
    let interval = heartbeat.interval.unwrap_or_default();
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let source = match heartbeat.coverage.as_ref().map(|coverage| coverage.source()) {
        Some(Source::Ebpf) => "ebpf",
        Some(Source::Proc) => "proc",
        Some(Source::Taskstats) => "taskstats",
        Some(Source::Tracepoints) => "tracepoints",
        Some(Source::TracepointsTaskstats) => "tracepoints_taskstats",
        Some(Source::Unspecified) | None => "unknown",
    };
    Ok(Row {
        sequence: signed(heartbeat.sequence),
        start_unix_ms: interval.start_unix_ms,
        end_unix_ms: interval.end_unix_ms,
        start_boottime_ns: signed(interval.start_boottime_ns),
        end_boottime_ns: signed(interval.end_boottime_ns),
        counters_since_boottime_ns: signed(interval.counters_since_boottime_ns),
        source,
        columns: columns::of(heartbeat),
        message,
        sample: NodeSample::of(boot_id, heartbeat),
    })
}
