//! Heartbeats: stored once each, however often they are sent, and counted up without gaps.
//!
//! One envelope is one transaction of six statements: mark the boot (which locks it against other sweepers) and read it, insert what is
//! new, read on from the watermark, write boot and node back; a seventh counts what the sender discarded, if it did. A heartbeat at or
//! below the mark is stored already or was discarded by its sender, and is not inserted again.

use super::{
    Doing as _, Store, StoreError, corrupt,
    entities::{boot, heartbeat as row, node},
    to_unix_ms,
};
use heartbeat::{
    BootId, NodeId,
    envelope::Checked,
    wire::{Heartbeat, Source},
};
use jiff::Timestamp;
use prost::Message as _;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, DatabaseTransaction, EntityTrait as _, PaginatorTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, TryInsertResult, sea_query::Expr, sea_query::OnConflict,
};

/// zstd's default. A heartbeat is packed alone, so that each row can be read alone.
const COMPRESSION_LEVEL: i32 = 3;
/// Unpacked size beyond which a stored message is taken for damaged; an accepted envelope is smaller.
const MAX_MESSAGE_BYTES: usize = heartbeat::envelope::MAX_DECOMPRESSED_BYTES;
/// Sequences read at once while the watermark moves on.
const PAGE: u64 = 1_024;

/// What became of one envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Heartbeats that were new.
    pub stored: u32,
    /// Heartbeats that were known.
    pub duplicates: u32,
    /// Every sequence up to this one is stored or lost for good.
    pub contiguous_sequence: u64,
    /// Heartbeats that the sender discarded before they ever arrived, newly found with this envelope.
    pub lost: u64,
}

/// One heartbeat as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHeartbeat {
    /// The boot that it speaks of.
    pub boot_id: BootId,
    /// The message.
    pub heartbeat: Heartbeat,
}

impl Store {
    /// Stores what is new of one envelope and moves the watermark on, in one transaction.
    ///
    /// # Errors
    /// If the database does not answer; nothing is stored then.
    pub async fn store_heartbeats(&self, envelope: &Checked, now: Timestamp) -> Result<Stored, StoreError> {
        let (node_id, boot_id) = (envelope.node_id.to_string(), envelope.boot_id.to_string());
        // Packing needs no lock, so it is done before one is taken.
        let rows = envelope.heartbeats.iter().map(|heartbeat| pack(&node_id, &boot_id, heartbeat, now));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let sent = rows.len();

        let transaction = self.begin_write().await?;
        let mark = lock_boot(&transaction, &node_id, &boot_id, now).await?;
        let fresh: Vec<_> = rows.into_iter().filter(|row| *row.sequence.as_ref() > mark.contiguous_sequence).collect();
        let highest = fresh.iter().map(|row| *row.sequence.as_ref()).max().unwrap_or(0).max(mark.highest_sequence);
        let stored = match row::Entity::insert_many(fresh)
            .on_conflict_do_nothing()
            .exec_without_returning(&transaction)
            .await
            .doing("store heartbeats")?
        {
            TryInsertResult::Inserted(rows) => rows,
            TryInsertResult::Empty | TryInsertResult::Conflicted => 0,
        };
        let (discarded_until, lost) =
            discarded(&transaction, &mark, envelope.oldest_retained_sequence, highest).await?;
        let contiguous = walk(&transaction, &mark, discarded_until, highest).await?;
        boot::Entity::update(boot::ActiveModel {
            node_id: Set(node_id.clone()),
            boot_id: Set(boot_id),
            contiguous_sequence: Set(contiguous),
            highest_sequence: Set(highest),
            lost_heartbeats: Set(mark.lost_heartbeats.saturating_add(lost)),
            last_seen_at_unix_ms: Set(to_unix_ms(now)),
        })
        .exec_without_returning(&transaction)
        .await
        .doing("move a boot's watermark")?;
        node::Entity::update_many()
            .col_expr(node::Column::LastSeenAtUnixMs, Expr::value(to_unix_ms(now)))
            .filter(node::Column::NodeId.eq(node_id))
            .exec(&transaction)
            .await
            .doing("note when a node was last seen")?;
        transaction.commit().await.doing("commit heartbeats")?;

        let stored = u32::try_from(stored).unwrap_or(u32::MAX);
        Ok(Stored {
            stored,
            duplicates: u32::try_from(sent).unwrap_or(u32::MAX).saturating_sub(stored),
            contiguous_sequence: contiguous.unsigned_abs(),
            lost: lost.unsigned_abs(),
        })
    }

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
        let rows: Vec<(String, i64, Vec<u8>)> = row::Entity::find()
            .select_only()
            .columns([row::Column::BootId, row::Column::Sequence, row::Column::Message])
            .filter(row::Column::NodeId.eq(node_id.to_string()))
            .filter(row::Column::EndUnixMs.gte(to_unix_ms(from)))
            .filter(row::Column::EndUnixMs.lt(to_unix_ms(to)))
            .order_by_asc(row::Column::EndUnixMs)
            .order_by_asc(row::Column::EndBoottimeNs)
            .into_tuple()
            .all(&self.connection)
            .await
            .doing("read heartbeats")?;
        rows.into_iter()
            .map(|(boot_id, sequence, message)| {
                let damaged = |reason: String| corrupt(format!("heartbeat {sequence} of {node_id}"), reason);
                Ok(StoredHeartbeat {
                    boot_id: boot_id.parse().map_err(|error: heartbeat::IdentityError| damaged(error.to_string()))?,
                    heartbeat: unpack(&message).map_err(|error| damaged(error.to_string()))?,
                })
            })
            .collect()
    }

    /// Deletes heartbeats whose interval ended before `time`, and says how many. The marks of their boots stay.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_heartbeats_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let deleted = row::Entity::delete_many()
            .filter(row::Column::EndUnixMs.lt(to_unix_ms(time)))
            .exec(&self.connection)
            .await
            .doing("delete old heartbeats")?;
        Ok(deleted.rows_affected)
    }
}

/// Makes sure that the boot has a row and holds its lock until the transaction ends: on PostgreSQL the update locks the row, on SQLite the
/// transaction already holds the only write lock.
async fn lock_boot(
    transaction: &DatabaseTransaction,
    node_id: &str,
    boot_id: &str,
    now: Timestamp,
) -> Result<boot::Model, StoreError> {
    let fresh = boot::ActiveModel {
        node_id: Set(node_id.to_owned()),
        boot_id: Set(boot_id.to_owned()),
        contiguous_sequence: Set(0),
        highest_sequence: Set(0),
        lost_heartbeats: Set(0),
        last_seen_at_unix_ms: Set(to_unix_ms(now)),
    };
    let touch = OnConflict::columns([boot::Column::NodeId, boot::Column::BootId])
        .update_column(boot::Column::LastSeenAtUnixMs)
        .to_owned();
    boot::Entity::insert(fresh).on_conflict(touch).exec_without_returning(transaction).await.doing("lock a boot")?;
    boot::Entity::find_by_id((node_id.to_owned(), boot_id.to_owned()))
        .one(transaction)
        .await
        .doing("read a boot")?
        .ok_or_else(|| corrupt(format!("boot {boot_id} of {node_id}"), "the row that was just written is missing"))
}

fn sequences_of(mark: &boot::Model) -> sea_orm::Select<row::Entity> {
    row::Entity::find()
        .filter(row::Column::NodeId.eq(mark.node_id.as_str()))
        .filter(row::Column::BootId.eq(mark.boot_id.as_str()))
}

/// The highest sequence that the sender no longer holds, and how many up to there never arrived. A sender cannot discard what it has
/// not yet sent, so this ends at the highest sequence known.
async fn discarded(
    transaction: &DatabaseTransaction,
    mark: &boot::Model,
    oldest_retained: u64,
    highest: i64,
) -> Result<(i64, i64), StoreError> {
    let discarded_until = i64::try_from(oldest_retained.saturating_sub(1)).unwrap_or(i64::MAX).min(highest);
    if discarded_until <= mark.contiguous_sequence {
        return Ok((mark.contiguous_sequence, 0));
    }
    let arrived = sequences_of(mark)
        .filter(row::Column::Sequence.gt(mark.contiguous_sequence))
        .filter(row::Column::Sequence.lte(discarded_until))
        .count(transaction)
        .await
        .doing("count heartbeats below the sender's oldest")?;
    let arrived = i64::try_from(arrived).unwrap_or(i64::MAX);
    Ok((discarded_until, (discarded_until - mark.contiguous_sequence).saturating_sub(arrived)))
}

/// The end of the run of stored sequences that begins behind `discarded_until`.
async fn walk(
    transaction: &DatabaseTransaction,
    mark: &boot::Model,
    discarded_until: i64,
    highest: i64,
) -> Result<i64, StoreError> {
    let mut contiguous = discarded_until;
    while contiguous < highest {
        let page: Vec<i64> = sequences_of(mark)
            .select_only()
            .column(row::Column::Sequence)
            .filter(row::Column::Sequence.gt(contiguous))
            .order_by_asc(row::Column::Sequence)
            .limit(PAGE)
            .into_tuple()
            .all(transaction)
            .await
            .doing("read sequences")?;
        let before = contiguous;
        for sequence in &page {
            if *sequence == contiguous + 1 {
                contiguous = *sequence;
            }
        }
        if contiguous - before < i64::try_from(PAGE).unwrap_or(i64::MAX) {
            break;
        }
    }
    Ok(contiguous)
}

fn pack(node_id: &str, boot_id: &str, heartbeat: &Heartbeat, now: Timestamp) -> Result<row::ActiveModel, StoreError> {
    let message = zstd::bulk::compress(&heartbeat.encode_to_vec(), COMPRESSION_LEVEL)
        .map_err(|error| corrupt("a heartbeat that was to be stored", error))?;
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
    Ok(row::ActiveModel {
        node_id: Set(node_id.to_owned()),
        boot_id: Set(boot_id.to_owned()),
        sequence: Set(signed(heartbeat.sequence)),
        start_unix_ms: Set(interval.start_unix_ms),
        end_unix_ms: Set(interval.end_unix_ms),
        start_boottime_ns: Set(signed(interval.start_boottime_ns)),
        end_boottime_ns: Set(signed(interval.end_boottime_ns)),
        counters_since_boottime_ns: Set(signed(interval.counters_since_boottime_ns)),
        source: Set(source.to_owned()),
        received_at_unix_ms: Set(to_unix_ms(now)),
        message: Set(message),
    })
}

fn unpack(message: &[u8]) -> std::io::Result<Heartbeat> {
    let plain = zstd::bulk::decompress(message, MAX_MESSAGE_BYTES)?;
    Heartbeat::decode(plain.as_slice()).map_err(std::io::Error::other)
}
