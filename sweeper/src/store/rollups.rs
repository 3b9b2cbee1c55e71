//! Rollups: which are to be made is noted in the transaction that stores a heartbeat, and each is made in one transaction with the end of that note.
//!
//! Whoever stores a node's heartbeats holds the lock of the node's row, and so does whoever makes its rollups. Only then is the note taken away and everything
//! read that the rollup depends on: a rollup that is not noted is the one of what is stored.

mod heartbeats;
mod notes;
mod summaries;

pub(super) use notes::{New, note_heartbeats};
pub use summaries::PackedSummary;

use super::{
    Doing as _, Store, StoreError, clock,
    commit::{execute, get, query},
    corrupt, from_unix_ms,
    given::Column,
    to_unix_ms,
};
use crate::rollup::{Activity, Period, Rollup, Tier};
use heartbeat::NodeId;
use heartbeats::{Found, Place, add_earlier, ended_within, fitting, messages, of_places, read_together};
use jiff::{SignedDuration, Timestamp};
use notes::{AT_ONCE, end_notes, find_due, note};
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, QueryResult, Statement, TransactionTrait as _};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// After so long what is made is committed, and the others stay due: whoever stores heartbeats of these nodes waits meanwhile.
const LONGEST: Duration = Duration::from_millis(250);
/// The text of a rollup is mostly names and zeros.
const COMPRESSION_LEVEL: i32 = 3;
/// Largest rollup that is read: what is written has at most 4,100 entries of 3 kB.
const MAX_ROLLUP_BYTES: usize = 32 << 20;
/// The heartbeat before a period's first, from which that is counted, lies at most so far back.
const REACH: SignedDuration = SignedDuration::from_mins(70);

/// What became of the rollups that were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolledUp {
    /// How many were made.
    pub made: u64,
    /// How many were not, because some of what they depend on is past its retention: what came so late is stored, and in no rollup.
    pub too_late: u64,
    /// Whether others are due already, as far as this one saw.
    pub are_more_due: bool,
}

/// A rollup as it is stored.
#[derive(Clone, Debug)]
pub struct PackedRollup(Vec<u8>);

impl PackedRollup {
    /// The rollup.
    ///
    /// # Errors
    /// If it is damaged, or of a later version.
    pub fn unpack(&self) -> std::io::Result<Rollup> {
        unpack(&self.0)
    }
}

/// Hours of a node: those that begin from `from` on and before `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHours {
    /// The node's id.
    pub node: String,
    /// The begin of the first one, or before it.
    pub from: Timestamp,
    /// The begin of the first one behind them.
    pub to: Timestamp,
}

/// One node and period.
type Key = (String, Period);

impl Store {
    /// Makes some of the rollups that are due at `now`, those that have been due longest first. `heartbeats_from`: what ended before may be deleted
    /// already. Says nothing was done once none is due.
    ///
    /// # Errors
    /// If the database does not answer; nothing has changed then.
    pub async fn roll_up(&self, now: Timestamp, heartbeats_from: Timestamp) -> Result<RolledUp, StoreError> {
        let transaction = self.begin_write().await?;
        let due = find_due(&transaction, now).await?;
        let found = due.len();
        let from = to_unix_ms(heartbeats_from.checked_add(REACH).unwrap_or(Timestamp::MAX));
        let is_too_late = |key: &Key| key.1.tier == Tier::FiveMinutes && key.1.start_unix_ms < from;
        let (too_late, due): (Vec<_>, Vec<_>) = due.into_iter().partition(is_too_late);
        let (hours, five_minutes): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|(_, period)| period.tier == Tier::Hour);
        let mut batch = Batch { begun: Instant::now(), done: Vec::new(), made: Vec::new(), again: Vec::new() };
        batch.of_heartbeats(&transaction, &five_minutes).await?;
        batch.of_hours(&transaction, &hours).await?;
        write(&transaction, &batch.made).await?;
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (made, late) = (batch.done.len(), too_late.len());
        let are_more_due = found == AT_ONCE || made + late < found;
        let done = RolledUp { made: count(made), too_late: count(late), are_more_due };
        batch.done.extend(too_late);
        end_notes(&transaction, &batch.done).await?;
        let changed = batch.made.iter().map(|made| &made.key).filter(|(_, period)| period.tier == Tier::FiveMinutes);
        let hours = changed.map(|(node, period)| (node.clone(), period.hour()));
        note(&transaction, hours.chain(batch.again), now).await?;
        transaction.commit().await.doing("commit rollups")?;
        Ok(done)
    }

    /// Since when the oldest rollup has been due that is not made yet; `None` if none is due.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn rollups_due_since(&self) -> Result<Option<SignedDuration>, StoreError> {
        let backend = self.connection.get_database_backend();
        let sql = format!("SELECT {} - MIN(due_unix_ms) AS late FROM rollups_due", clock(backend));
        let row = self.connection.query_one_raw(Statement::from_string(backend, sql)).await;
        let row = row.doing("ask which rollups are due")?;
        let late_ms = row.map(|row| get::<Option<i64>>(&row, "late")).transpose()?.flatten();
        Ok(late_ms.filter(|ms| *ms > 0).map(SignedDuration::from_millis))
    }

    /// A node's rollups of periods that begin from `from` on and before `to`, in their order.
    ///
    /// # Errors
    /// If the database does not answer or a stored rollup is damaged.
    pub async fn rollups(
        &self,
        node_id: &NodeId,
        tier: Tier,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(Timestamp, Rollup)>, StoreError> {
        let transaction = self.connection.begin().await.doing("begin to read rollups")?;
        let asked = (node_id.to_string(), to_unix_ms(from), to_unix_ms(to));
        let found = read(&transaction, tier, asked).await?;
        let unpacked = found.into_iter().map(|(start_unix_ms, packed)| {
            let damaged = |error| corrupt(format!("the rollup of {node_id} from {start_unix_ms}"), error);
            Ok((from_unix_ms(start_unix_ms)?, unpack(&packed).map_err(damaged)?))
        });
        unpacked.collect()
    }

    /// What a node as a whole did in each hour that begins from `from` on and before `to`, by its begin; its workloads are not read.
    ///
    /// # Errors
    /// If the database does not answer or a stored rollup is damaged.
    pub async fn node_hours(
        &self,
        node_id: &NodeId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(Timestamp, Activity)>, StoreError> {
        let found = self.packed_summaries(&[node_id.to_string()], from, to).await?;
        let unpacked = found.into_iter().map(|((_, start_unix_ms), packed)| {
            let damaged = |error| corrupt(format!("the rollup of {node_id} from {start_unix_ms}"), error);
            Ok((from_unix_ms(start_unix_ms)?, packed.node().map_err(damaged)?))
        });
        unpacked.collect()
    }

    /// Some hours of several nodes (at most 1,000 stretches), by node and begin; each is unpacked where it is used.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn packed_hours(&self, asked: &[NodeHours]) -> Result<BTreeMap<(String, i64), PackedRollup>, StoreError> {
        self.each_hour(asked, "rollup", |row| Ok(PackedRollup(get(row, "rollup")?))).await
    }

    /// What is `selected` of these hours, by node and begin.
    async fn each_hour<T>(
        &self,
        asked: &[NodeHours],
        selected: &str,
        take: impl Fn(&QueryResult) -> Result<T, StoreError>,
    ) -> Result<BTreeMap<(String, i64), T>, StoreError> {
        if asked.is_empty() {
            return Ok(BTreeMap::new());
        }
        let body = format!(
            "SELECT rollups.node_id AS node_id, start_unix_ms, {selected} FROM given JOIN rollups ON rollups.node_id = given.node_id \
             AND rollups.tier = given.tier AND start_unix_ms >= given.from_unix_ms AND start_unix_ms < given.to_unix_ms"
        );
        let times = |time: fn(&NodeHours) -> Timestamp| {
            Column::Integer(asked.iter().map(|hours| to_unix_ms(time(hours))).collect())
        };
        let columns = vec![
            ("node_id", Column::Text(asked.iter().map(|hours| hours.node.clone()).collect())),
            ("tier", Column::Integer(vec![Tier::Hour.number(); asked.len()])),
            ("from_unix_ms", times(|hours| hours.from)),
            ("to_unix_ms", times(|hours| hours.to)),
        ];
        let transaction = self.connection.begin().await.doing("begin to read rollups")?;
        let rows = query(&transaction, columns, &body, "read the hours of nodes").await?;
        rows.iter().map(|row| Ok(((get(row, "node_id")?, get(row, "start_unix_ms")?), take(row)?))).collect()
    }

    /// Writes rollups of a node's hours (at most 1,000), each by its begin, in the place of what was there, as if they had been made.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_hours(&self, node_id: &NodeId, hours: Vec<(Timestamp, Rollup)>) -> Result<(), StoreError> {
        let mut batch = Batch { begun: Instant::now(), done: Vec::new(), made: Vec::new(), again: Vec::new() };
        for (start, rollup) in hours {
            let period = Period { tier: Tier::Hour, start_unix_ms: to_unix_ms(start) };
            batch.put(&(node_id.to_string(), period), Some(rollup))?;
        }
        let transaction = self.begin_write().await?;
        write(&transaction, &batch.made).await?;
        transaction.commit().await.doing("commit rollups")
    }

    /// Deletes rollups of periods that began before `time`, and says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_rollups_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.delete_before("rollups", "start_unix_ms", time, "delete old rollups").await
    }
}

/// What is made in one transaction.
#[derive(Debug)]
struct Batch {
    begun: Instant,
    /// What is not due any more.
    done: Vec<Key>,
    made: Vec<Made>,
    /// What could not be made, and is tried again later.
    again: Vec<Key>,
}

/// A rollup that is to be written.
#[derive(Debug)]
struct Made {
    key: Key,
    heartbeats: i64,
    packed: Vec<u8>,
    /// Of an hour; empty otherwise.
    summary: Vec<u8>,
}

impl Batch {
    /// Whether those who store heartbeats of these nodes have waited for long enough.
    fn is_long(&self) -> bool {
        !self.done.is_empty() && self.begun.elapsed() > LONGEST
    }

    /// Of nothing nothing is made.
    fn put(&mut self, key: &Key, rollup: Option<Rollup>) -> Result<(), StoreError> {
        if let Some(rollup) = rollup {
            let unfit = |error| corrupt("a rollup that was to be stored", error);
            let (packed, summary) =
                (pack(&rollup).map_err(unfit)?, summaries::pack(key.1.tier, &rollup).map_err(unfit)?);
            let heartbeats = i64::try_from(rollup.heartbeats).unwrap_or(i64::MAX);
            self.made.push(Made { key: key.clone(), heartbeats, packed, summary });
        }
        self.done.push(key.clone());
        Ok(())
    }

    /// Makes rollups of heartbeats.
    async fn of_heartbeats(&mut self, transaction: &DatabaseTransaction, keys: &[Key]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut places = ended_within(transaction, keys).await?;
        add_earlier(transaction, &mut places).await?;
        let mut rest = keys;
        while !rest.is_empty() && !self.is_long() {
            let (together, others) = rest.split_at(read_together(rest, &places));
            rest = others;
            let all = together.iter().filter_map(|key| places.get(key)).flatten();
            let all: BTreeMap<Place, Found> = all.map(|(place, found)| (place.clone(), *found)).collect();
            let all: Vec<_> = all.into_iter().collect();
            // Of a period that is too large for that as many as fit are read at once, one after the other.
            let read = if fitting(&all) == all.len() { messages(transaction, &all).await? } else { BTreeMap::new() };
            for key in together {
                if self.is_long() {
                    return Ok(());
                }
                let places = places.remove(key).unwrap_or_default();
                let rollup = of_places(transaction, key.1, &places.into_iter().collect::<Vec<_>>(), &read).await?;
                self.put(key, rollup)?;
            }
        }
        Ok(())
    }

    /// Makes rollups of an hour from those of five minutes, of which one at a time is unpacked.
    async fn of_hours(&mut self, transaction: &DatabaseTransaction, keys: &[Key]) -> Result<(), StoreError> {
        for key in keys {
            if self.is_long() {
                break;
            }
            let (node, hour) = key;
            let asked = (node.clone(), hour.start_unix_ms, hour.end_unix_ms());
            let found = read(transaction, Tier::FiveMinutes, asked).await?;
            let mut damaged = None;
            let parts = found.values().map_while(|packed| unpack(packed).map_err(|error| damaged = Some(error)).ok());
            let rollup = Rollup::of_parts(parts);
            match damaged {
                None => self.put(key, rollup)?,
                // Written by a later version, perhaps, whose replica will make it. An hour without one of its parts would be wrong.
                Some(error) => {
                    tracing::error!(node, %error, "a rollup of five minutes cannot be read; that of its hour is tried again later");
                    self.done.push(key.clone());
                    self.again.push(key.clone());
                }
            }
        }
        Ok(())
    }
}

/// A node's rollups of this tier that begin within this time, by their begins.
async fn read(
    transaction: &DatabaseTransaction,
    tier: Tier,
    (node, from_unix_ms, to_unix_ms): (String, i64, i64),
) -> Result<BTreeMap<i64, Vec<u8>>, StoreError> {
    let body = "SELECT start_unix_ms, rollup FROM given JOIN rollups ON rollups.node_id = given.node_id \
                AND rollups.tier = given.tier AND start_unix_ms >= given.from_unix_ms AND start_unix_ms < given.to_unix_ms";
    let columns = vec![
        ("node_id", Column::Text(vec![node])),
        ("tier", Column::Integer(vec![tier.number()])),
        ("from_unix_ms", Column::Integer(vec![from_unix_ms])),
        ("to_unix_ms", Column::Integer(vec![to_unix_ms])),
    ];
    let rows = query(transaction, columns, body, "read rollups").await?;
    rows.iter().map(|row| Ok((get(row, "start_unix_ms")?, get(row, "rollup")?))).collect()
}

async fn write(transaction: &DatabaseTransaction, made: &[Made]) -> Result<(), StoreError> {
    if made.is_empty() {
        return Ok(());
    }
    let body = "INSERT INTO rollups (node_id, tier, start_unix_ms, heartbeats, rollup, summary, summary_heartbeats, summary_of_bytes) \
                SELECT node_id, tier, start, heartbeats, rollup, CASE WHEN length(summary) > 0 THEN summary END, \
                CASE WHEN length(summary) > 0 THEN heartbeats END, CASE WHEN length(summary) > 0 THEN length(rollup) END FROM given WHERE true \
                ON CONFLICT (node_id, tier, start_unix_ms) DO UPDATE SET heartbeats = excluded.heartbeats, rollup = excluded.rollup, \
                summary = excluded.summary, summary_heartbeats = excluded.summary_heartbeats, summary_of_bytes = excluded.summary_of_bytes";
    let mut columns = periods_given(&made.iter().map(|made| made.key.clone()).collect::<Vec<_>>());
    columns.push(("heartbeats", Column::Integer(made.iter().map(|made| made.heartbeats).collect())));
    columns.push(("rollup", Column::Bytes(made.iter().map(|made| made.packed.clone()).collect())));
    columns.push(("summary", Column::Bytes(made.iter().map(|made| made.summary.clone()).collect())));
    execute(transaction, columns, body, "write rollups").await
}

fn pack(rollup: &Rollup) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(&serde_json::to_vec(rollup)?, COMPRESSION_LEVEL)
}

fn unpack<T: serde::de::DeserializeOwned>(packed: &[u8]) -> std::io::Result<T> {
    let told = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    let bytes = told.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(MAX_ROLLUP_BYTES);
    let text = zstd::bulk::decompress(packed, bytes.min(MAX_ROLLUP_BYTES))?;
    Ok(serde_json::from_slice(&text)?)
}

fn periods_given(keys: &[Key]) -> Vec<(&'static str, Column)> {
    let integers = |value: fn(&Period) -> i64| Column::Integer(keys.iter().map(|(_, period)| value(period)).collect());
    vec![
        ("node_id", Column::Text(keys.iter().map(|(node, _)| node.clone()).collect())),
        ("tier", integers(|period| period.tier.number())),
        ("start", integers(|period| period.start_unix_ms)),
    ]
}

fn places_given(places: impl Iterator<Item = Place>) -> Vec<(&'static str, Column)> {
    let (mut nodes, mut boots, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    for (node, boot, sequence) in places {
        nodes.push(node);
        boots.push(boot);
        sequences.push(sequence);
    }
    vec![("node_id", Column::Text(nodes)), ("boot_id", Column::Text(boots)), ("sequence", Column::Integer(sequences))]
}
