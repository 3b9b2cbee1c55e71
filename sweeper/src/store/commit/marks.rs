//! How far the heartbeats of each boot have arrived: counted up without gaps, under the lock of the boot's row.

use super::{BootKey, Delivery, Stored, execute, get, key_columns, query};
use crate::store::{
    Doing as _, StoreError, corrupt,
    entities::heartbeat as row,
    given::{Column, MAX_ROWS},
    to_unix_ms,
};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait as _, DatabaseTransaction, DbBackend, EntityTrait as _, PaginatorTrait as _,
    QueryFilter as _, QueryOrder as _, QuerySelect as _,
};
use std::collections::{BTreeMap, BTreeSet};

/// Sequences read at once while the watermark moves on.
const PAGE: u64 = 1_024;

/// How far the heartbeats of one boot have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// Every sequence up to this one is stored or lost for good.
    pub(super) contiguous: i64,
    /// The highest sequence that is stored.
    pub(super) highest: i64,
    /// How many never arrived.
    pub(super) lost: i64,
}

/// What a group brings of one boot.
#[derive(Debug)]
pub(super) struct Brought<'a> {
    pub(super) key: BootKey<'a>,
    pub(super) mark: Mark,
    oldest_retained: u64,
    /// Sequences that are new.
    pub(super) inserted: BTreeSet<i64>,
    lost: i64,
}

/// Where a boot is among those of a group, which are in the order of their keys.
pub(super) fn find(brought: &[Brought<'_>], key: BootKey<'_>) -> Option<usize> {
    brought.binary_search_by(|boot| boot.key.cmp(&key)).ok()
}

/// The boots that are spoken of with their marks, under their locks, in the order of their keys.
pub(super) async fn marks<'a>(
    transaction: &DatabaseTransaction,
    deliveries: &[&'a Delivery],
    now: Timestamp,
) -> Result<Vec<Brought<'a>>, StoreError> {
    let mut oldest = BTreeMap::<BootKey<'a>, u64>::new();
    for delivery in deliveries {
        let oldest = oldest.entry(delivery.key()).or_default();
        *oldest = delivery.oldest_retained.max(*oldest);
    }
    let keys: Vec<_> = oldest.keys().copied().collect();
    let mut known = read_marks(transaction, &keys).await?;
    let is_new = |key: &BootKey<'_>| !known.contains_key(&(key.0.to_owned(), key.1.to_owned()));
    let new: Vec<_> = keys.into_iter().filter(is_new).collect();
    if !new.is_empty() {
        // Somebody else may do the same at this moment: who comes second waits for the first, and reads what that one wrote.
        let body = "INSERT INTO boots (node_id, boot_id, contiguous_sequence, highest_sequence, lost_heartbeats, last_seen_at_unix_ms) \
                    SELECT node_id, boot_id, 0, 0, 0, seen FROM given WHERE true ON CONFLICT DO NOTHING";
        for keys in new.chunks(MAX_ROWS) {
            let seen = vec![to_unix_ms(now); keys.len()];
            let mut columns = key_columns(keys);
            columns.push(("seen", Column::Integer(seen)));
            execute(transaction, columns, body, "note boots").await?;
        }
        known.extend(read_marks(transaction, &new).await?);
    }
    oldest
        .into_iter()
        .map(|(key, oldest_retained)| {
            let mark = known.remove(&(key.0.to_owned(), key.1.to_owned()));
            let missing =
                || corrupt(format!("boot {} of {}", key.1, key.0), "the row that was just written is missing");
            Ok(Brought { key, mark: mark.ok_or_else(missing)?, oldest_retained, inserted: BTreeSet::new(), lost: 0 })
        })
        .collect()
}

async fn read_marks(
    transaction: &DatabaseTransaction,
    keys: &[BootKey<'_>],
) -> Result<BTreeMap<(String, String), Mark>, StoreError> {
    let lock = if transaction.get_database_backend() == DbBackend::Postgres { "FOR UPDATE OF boots" } else { "" };
    let body = format!(
        "SELECT boots.node_id AS node_id, boots.boot_id AS boot_id, contiguous_sequence, highest_sequence, lost_heartbeats \
         FROM given JOIN boots ON boots.node_id = given.node_id AND boots.boot_id = given.boot_id \
         ORDER BY boots.node_id, boots.boot_id {lock}"
    );
    let mut marks = BTreeMap::new();
    for keys in keys.chunks(MAX_ROWS) {
        for row in query(transaction, key_columns(keys), &body, "read boots").await? {
            let mark = Mark {
                contiguous: get(&row, "contiguous_sequence")?,
                highest: get(&row, "highest_sequence")?,
                lost: get(&row, "lost_heartbeats")?,
            };
            marks.insert((get(&row, "node_id")?, get(&row, "boot_id")?), mark);
        }
    }
    Ok(marks)
}

impl Brought<'_> {
    /// Moves the mark over what was inserted and what the sender no longer holds.
    pub(super) async fn advance(&mut self, transaction: &DatabaseTransaction) -> Result<(), StoreError> {
        let before = self.mark;
        let highest = self.inserted.last().copied().unwrap_or(0).max(before.highest);
        // A sender cannot discard what it has not sent yet, so this ends at the highest sequence known.
        let discarded_until = i64::try_from(self.oldest_retained.saturating_sub(1)).unwrap_or(i64::MAX).min(highest);
        // Usually nothing waits above the mark but what has just come.
        let has_gaps = before.highest > before.contiguous || discarded_until > before.contiguous;
        let (contiguous, lost) = if has_gaps {
            let (node, boot) = self.key;
            advance_over_gaps(transaction, node, boot, before.contiguous, discarded_until, highest).await?
        } else {
            let mut mark = before.contiguous;
            for sequence in &self.inserted {
                if *sequence == mark + 1 {
                    mark = *sequence;
                }
            }
            (mark, 0)
        };
        self.mark = Mark { contiguous, highest, lost: before.lost.saturating_add(lost) };
        self.lost = lost;
        Ok(())
    }

    /// What became of one of its deliveries. Of several the first one tells what was new and what is lost.
    pub(super) fn answer(&mut self, delivery: &Delivery) -> Stored {
        let stored = delivery.rows.iter().filter(|row| self.inserted.remove(&row.sequence)).count();
        Stored {
            stored: u32::try_from(stored).unwrap_or(u32::MAX),
            duplicates: u32::try_from(delivery.rows.len() - stored).unwrap_or(u32::MAX),
            contiguous_sequence: self.mark.contiguous.unsigned_abs(),
            lost: std::mem::take(&mut self.lost).unsigned_abs(),
        }
    }
}

/// Moves a boot's mark on from `contiguous`: over what its sender no longer holds, and over what is stored without a gap behind that.
/// Says where it stands then, and how many below never arrived.
async fn advance_over_gaps(
    transaction: &DatabaseTransaction,
    node_id: &str,
    boot_id: &str,
    contiguous: i64,
    discarded_until: i64,
    highest: i64,
) -> Result<(i64, i64), StoreError> {
    let stored = || {
        let boot = row::Entity::find().filter(row::Column::NodeId.eq(node_id)).filter(row::Column::BootId.eq(boot_id));
        boot.select_only().column(row::Column::Sequence)
    };
    let mut lost = 0;
    let mut mark = contiguous;
    if discarded_until > contiguous {
        let arrived = stored()
            .filter(row::Column::Sequence.gt(contiguous))
            .filter(row::Column::Sequence.lte(discarded_until))
            .count(transaction)
            .await
            .doing("count heartbeats below the sender's oldest")?;
        lost = (discarded_until - contiguous).saturating_sub(i64::try_from(arrived).unwrap_or(i64::MAX));
        mark = discarded_until;
    }
    while mark < highest {
        let page: Vec<i64> = stored()
            .filter(row::Column::Sequence.gt(mark))
            .order_by_asc(row::Column::Sequence)
            .limit(PAGE)
            .into_tuple()
            .all(transaction)
            .await
            .doing("read sequences")?;
        let before = mark;
        for sequence in &page {
            if *sequence == mark + 1 {
                mark = *sequence;
            }
        }
        if mark - before < i64::try_from(PAGE).unwrap_or(i64::MAX) {
            break;
        }
    }
    Ok((mark, lost))
}

pub(super) async fn put_marks(
    transaction: &DatabaseTransaction,
    brought: &[Brought<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let body = "UPDATE boots SET contiguous_sequence = given.contiguous, highest_sequence = given.highest, lost_heartbeats = given.lost, \
                last_seen_at_unix_ms = given.seen FROM given WHERE boots.node_id = given.node_id AND boots.boot_id = given.boot_id";
    for boots in brought.chunks(MAX_ROWS) {
        let integers = |value: fn(&Mark) -> i64| Column::Integer(boots.iter().map(|boot| value(&boot.mark)).collect());
        let mut columns = key_columns(&boots.iter().map(|boot| boot.key).collect::<Vec<_>>());
        columns.extend([
            ("contiguous", integers(|mark| mark.contiguous)),
            ("highest", integers(|mark| mark.highest)),
            ("lost", integers(|mark| mark.lost)),
            ("seen", Column::Integer(vec![to_unix_ms(now); boots.len()])),
        ]);
        execute(transaction, columns, body, "move the marks of boots").await?;
    }
    Ok(())
}
