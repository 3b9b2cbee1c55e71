//! Which rollups are to be made: a row for each node and period, from the first heartbeat that changes it until it is made.

use super::{Key, periods_given, places_given};
use crate::{
    rollup::{Period, Tier},
    store::{
        Doing as _, StoreError,
        commit::{execute, get, query},
        corrupt,
        given::{Column, MAX_ROWS},
        to_unix_ms,
    },
};
use jiff::Timestamp;
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, QueryResult, Statement};
use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// Most rollups made in one transaction, whose ten statements they share.
pub(super) const AT_ONCE: usize = 64;
/// What a period's rollup waits for after its end: heartbeats of its last half minute, which an agent had to send again.
const DELAY_MS: [i64; 2] = [60_000, 300_000];
/// Over so long the rollups of all nodes are spread, whose periods all end at the same moment.
const SPREAD_MS: [u64; 2] = [210_000, 1_200_000];

/// A heartbeat that was just stored.
#[derive(Debug)]
pub(in crate::store) struct New<'a> {
    pub(in crate::store) node_id: &'a str,
    pub(in crate::store) boot_id: &'a str,
    pub(in crate::store) sequence: i64,
    pub(in crate::store) end_unix_ms: i64,
    /// A later one of its boot may be stored: what that one adds is counted from this one now.
    pub(in crate::store) may_be_late: bool,
}

/// Notes that the rollups are to be made which these heartbeats change.
pub(in crate::store) async fn note_heartbeats(
    transaction: &DatabaseTransaction,
    new: &[New<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let of = |node: &str, end_unix_ms| (node.to_owned(), Period::of(Tier::FiveMinutes, end_unix_ms));
    let mut keys: BTreeSet<Key> = new.iter().map(|new| of(new.node_id, new.end_unix_ms)).collect();
    let late: Vec<_> = new.iter().filter(|new| new.may_be_late).collect();
    let body = "SELECT heartbeats.node_id AS node_id, heartbeats.end_unix_ms AS end_unix_ms FROM given JOIN heartbeats \
                ON heartbeats.node_id = given.node_id AND heartbeats.boot_id = given.boot_id \
                AND heartbeats.sequence = (SELECT MIN(later.sequence) FROM heartbeats later WHERE later.node_id = given.node_id \
                AND later.boot_id = given.boot_id AND later.sequence > given.sequence)";
    for late in late.chunks(MAX_ROWS) {
        let places = late.iter().map(|new| (new.node_id.to_owned(), new.boot_id.to_owned(), new.sequence));
        for row in query(transaction, places_given(places), body, "find later heartbeats").await? {
            keys.insert(of(&get::<String>(&row, "node_id")?, get(&row, "end_unix_ms")?));
        }
    }
    note(transaction, keys, now).await
}

/// Notes that these rollups are to be made. Notes are written in the order of their keys, so that nobody waits for somebody who waits for them.
pub(super) async fn note(
    transaction: &DatabaseTransaction,
    keys: impl IntoIterator<Item = Key>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let body = "INSERT INTO rollups_due (node_id, tier, start_unix_ms, due_unix_ms) \
                SELECT node_id, tier, start, due FROM given WHERE true ON CONFLICT DO NOTHING";
    let keys: BTreeSet<Key> = keys.into_iter().collect();
    let keys: Vec<Key> = keys.into_iter().collect();
    for keys in keys.chunks(MAX_ROWS) {
        let mut columns = periods_given(keys);
        columns.push(("due", Column::Integer(keys.iter().map(|key| due_unix_ms(key, now)).collect())));
        execute(transaction, columns, body, "note which rollups are due").await?;
    }
    Ok(())
}

/// When a rollup is to be made: some time after its end, or after now if that has passed.
fn due_unix_ms((node, period): &Key, now: Timestamp) -> i64 {
    let mut hash = DefaultHasher::new();
    node.hash(&mut hash);
    let at = usize::from(period.tier == Tier::Hour);
    let spread_ms = i64::try_from(hash.finish() % SPREAD_MS[at]).unwrap_or(0);
    period.end_unix_ms().max(to_unix_ms(now)).saturating_add(DELAY_MS[at]).saturating_add(spread_ms)
}

/// The notes that are due, those that have been due longest first. They and their nodes are locked until the transaction ends.
pub(super) async fn find_due(transaction: &DatabaseTransaction, now: Timestamp) -> Result<Vec<Key>, StoreError> {
    let backend = transaction.get_database_backend();
    let is_postgres = backend == DbBackend::Postgres;
    // Another replica takes others.
    let skip = if is_postgres { "FOR UPDATE SKIP LOCKED" } else { "" };
    let sql = format!(
        "SELECT node_id, tier, start_unix_ms FROM rollups_due WHERE due_unix_ms <= {} \
         ORDER BY due_unix_ms, node_id, tier, start_unix_ms LIMIT {AT_ONCE} {skip}",
        to_unix_ms(now)
    );
    let rows =
        transaction.query_all_raw(Statement::from_string(backend, sql)).await.doing("find rollups that are due")?;
    let due: Vec<Key> = rows.iter().map(key).collect::<Result<_, _>>()?;
    if due.is_empty() {
        return Ok(due);
    }
    if is_postgres {
        // In the order of their ids, as those do who store heartbeats. Who has stored some and not committed yet has seen the notes that are taken away.
        let nodes: BTreeSet<String> = due.iter().map(|(node, _)| node.clone()).collect();
        let body = "SELECT nodes.node_id FROM given JOIN nodes ON nodes.node_id = given.node_id \
                    ORDER BY nodes.node_id FOR NO KEY UPDATE OF nodes";
        let nodes = vec![("node_id", Column::Text(nodes.into_iter().collect()))];
        query(transaction, nodes, body, "lock the nodes of rollups").await?;
    }
    Ok(due)
}

/// Takes away the notes of what is made.
pub(super) async fn end_notes(transaction: &DatabaseTransaction, keys: &[Key]) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    let body =
        "DELETE FROM rollups_due WHERE (node_id, tier, start_unix_ms) IN (SELECT node_id, tier, start FROM given)";
    execute(transaction, periods_given(keys), body, "take away what was due").await
}

fn key(row: &QueryResult) -> Result<Key, StoreError> {
    let number: i64 = get(row, "tier")?;
    let tier = [Tier::FiveMinutes, Tier::Hour].into_iter().find(|tier| tier.number() == number);
    let tier = tier.ok_or_else(|| corrupt("a rollup that is due", format!("no rollup lasts {number} s")))?;
    Ok((get(row, "node_id")?, Period { tier, start_unix_ms: get(row, "start_unix_ms")? }))
}
