//! A group commit: the heartbeats of many senders in one transaction.
//!
//! It takes ten statements however many senders there are: begin, lock the nodes and look at their tokens, read the boots' marks, insert
//! what is new, note which rollups that changes, move the marks, note when the nodes were last seen, read and write the nodes' states, commit; two more for a boot that is new, and for each one that has
//! gaps those that its gaps take. A heartbeat at or below the mark is stored already or was discarded by its sender, and is not
//! inserted again. One between the mark and the highest that is stored may be there already, perhaps of another day: that is asked first, under the lock
//! of the boot's row, since PostgreSQL keeps keys within a partition alone.
//!
//! Locks are taken node by node in the order of their ids, so that two sweepers never wait for each other.

mod marks;

use super::{
    Doing as _, Store, StoreError, TokenHash, clock, corrupt,
    entities::heartbeat,
    given::{Column, MAX_ROWS, statement},
    heartbeats::{
        self, Row,
        columns::{COLUMNS, NOT_MEASURED},
    },
    node_states,
    rollups::{self, New},
    to_unix_ms,
};
use crate::verdict::{NodeSample, Policy, StatePolicy};
use ::heartbeat::envelope::Checked;
use jiff::Timestamp;
use marks::{Brought, find, marks, put_marks};
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, IdenStatic as _, QueryResult};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Instant,
};

/// One envelope that is to be stored, packed.
#[derive(Clone, Debug)]
pub struct Delivery {
    node_id: String,
    boot_id: String,
    oldest_retained: u64,
    rows: Vec<Row>,
    /// The token that it came with.
    token: Option<TokenHash>,
    /// When it was packed, right behind its arrival.
    arrived: Instant,
}

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

/// What became of one delivery of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is stored.
    Stored(Stored),
    /// Its token is not its node's, or not any more; nothing of it is stored.
    TokenVoid,
}

impl Delivery {
    /// Packs an envelope, which takes no lock; `token` is what its sender showed, to be looked at again when it is stored.
    ///
    /// # Errors
    /// If zstd gets no memory.
    pub fn new(envelope: &Checked, token: Option<TokenHash>) -> Result<Self, StoreError> {
        Ok(Self {
            node_id: envelope.node_id.to_string(),
            boot_id: envelope.boot_id.to_string(),
            oldest_retained: envelope.oldest_retained_sequence,
            rows: envelope
                .heartbeats
                .iter()
                .map(|heartbeat| heartbeats::pack(envelope.boot_id, heartbeat))
                .collect::<Result<_, _>>()?,
            token,
            arrived: Instant::now(),
        })
    }

    /// How many heartbeats it has.
    #[must_use]
    pub fn heartbeats(&self) -> usize {
        self.rows.len()
    }

    fn key(&self) -> BootKey<'_> {
        (&self.node_id, &self.boot_id)
    }
}

/// Node and boot.
type BootKey<'a> = (&'a str, &'a str);

impl Store {
    /// Stores what is new of one envelope and moves its boot's mark on, with the state of its node by the default policy.
    ///
    /// # Errors
    /// If the database does not answer; nothing is stored then.
    pub async fn store_heartbeats(&self, envelope: &Checked, now: Timestamp) -> Result<Stored, StoreError> {
        let (delivery, state_policy) = (Delivery::new(envelope, None)?, StatePolicy::new(Policy::default()));
        match self.commit(&[delivery], &state_policy, now).await?.first() {
            Some(Delivered::Stored(stored)) => Ok(*stored),
            _ => Err(corrupt("a delivery without a token", "it is neither stored nor refused")),
        }
    }

    /// Stores what is new of many envelopes in one transaction, brings the states of their nodes up to date, and says in their order what became
    /// of each.
    ///
    /// # Errors
    /// If the database does not answer; nothing of any is stored then.
    pub async fn commit(
        &self,
        deliveries: &[Delivery],
        state_policy: &StatePolicy,
        now: Timestamp,
    ) -> Result<Vec<Delivered>, StoreError> {
        let stored = self.commit_once(deliveries, state_policy, now).await;
        if !stored.as_ref().is_err_and(StoreError::is_of_no_partition) {
            return stored;
        }
        let rows = deliveries.iter().flat_map(|delivery| &delivery.rows);
        self.make_days_of(rows.map(|row| row.end_unix_ms)).await?;
        self.commit_once(deliveries, state_policy, now).await
    }

    async fn commit_once(
        &self,
        deliveries: &[Delivery],
        state_policy: &StatePolicy,
        now: Timestamp,
    ) -> Result<Vec<Delivered>, StoreError> {
        // None of a group is younger than its oldest, however long that waited: an answer's age is told by this.
        let arrived = deliveries.iter().map(|delivery| delivery.arrived).min().unwrap_or_else(Instant::now);
        let transaction = self.begin_write().await?;
        let is_valid = lock_nodes(&transaction, deliveries).await?;
        let valid = deliveries.iter().zip(&is_valid).filter(|(_, is_valid)| **is_valid);
        let valid: Vec<&Delivery> = valid.map(|(delivery, _)| delivery).collect();
        let mut brought = marks(&transaction, &valid, now).await?;
        let new = insert(&transaction, &valid, &mut brought, arrived).await?;
        rollups::note_heartbeats(&transaction, &of_rollups(&new, &brought), now).await?;
        for boot in &mut brought {
            boot.advance(&transaction).await?;
        }
        put_marks(&transaction, &brought, now).await?;
        note_seen(&transaction, &brought, now).await?;
        node_states::update(&transaction, by_node(&new), state_policy).await?;
        transaction.commit().await.doing("commit heartbeats")?;
        let answers = deliveries.iter().zip(&is_valid).map(|(delivery, is_valid)| {
            let at = find(&brought, delivery.key()).filter(|_| *is_valid)?;
            Some(brought.get_mut(at)?.answer(delivery))
        });
        Ok(answers.map(|stored| stored.map_or(Delivered::TokenVoid, Delivered::Stored)).collect())
    }
}

/// Locks the nodes' rows until the transaction ends, and says of each delivery whether its token is its node's at this moment. One
/// without a token is let through: whoever makes it vouches for it.
async fn lock_nodes(transaction: &DatabaseTransaction, deliveries: &[Delivery]) -> Result<Vec<bool>, StoreError> {
    let backend = transaction.get_database_backend();
    let given: BTreeSet<_> = deliveries
        .iter()
        .map(|delivery| (delivery.node_id.as_str(), delivery.token.as_ref().map_or("", TokenHash::as_str)))
        .collect();
    let lock = if backend == DbBackend::Postgres { "FOR NO KEY UPDATE OF nodes" } else { "" };
    let body = format!(
        "SELECT given.node_id AS node_id, given.token AS token, CASE WHEN nodes.public_key IS NULL THEN nodes.token_sha256 = given.token \
         ELSE EXISTS (SELECT 1 FROM node_tokens WHERE node_tokens.token_sha256 = given.token \
         AND node_tokens.node_id = given.node_id AND node_tokens.expires_unix_ms > {}) END AS valid \
         FROM given JOIN nodes ON nodes.node_id = given.node_id ORDER BY nodes.node_id {lock}",
        clock(backend)
    );
    let mut valid = HashSet::new();
    let given: Vec<_> = given.into_iter().collect();
    for rows in given.chunks(MAX_ROWS) {
        let (nodes, tokens): (Vec<_>, Vec<_>) =
            rows.iter().map(|(node, token)| ((*node).to_owned(), (*token).to_owned())).unzip();
        let columns = vec![("node_id", Column::Text(nodes)), ("token", Column::Text(tokens))];
        for row in query(transaction, columns, &body, "lock nodes").await? {
            let text = |name: &str| row.try_get::<String>("", name).doing("lock nodes");
            if row.try_get::<bool>("", "valid").doing("lock nodes")? {
                valid.insert((text("node_id")?, text("token")?));
            }
        }
    }
    let is_valid = |delivery: &Delivery| {
        delivery
            .token
            .as_ref()
            .is_none_or(|token| valid.contains(&(delivery.node_id.clone(), token.as_str().to_owned())))
    };
    Ok(deliveries.iter().map(is_valid).collect())
}

/// What may be new, by node, boot and sequence.
type Fresh<'a> = BTreeMap<(BootKey<'a>, i64), &'a Row>;

/// Takes away what is stored already. Nothing is above the highest of its boot.
async fn remove_stored(
    transaction: &DatabaseTransaction,
    fresh: &mut Fresh<'_>,
    brought: &[Brought<'_>],
) -> Result<(), StoreError> {
    let highest = |key| find(brought, key).map_or(0, |at| brought[at].mark.highest);
    let doubtful: Vec<_> = fresh.keys().copied().filter(|(key, sequence)| *sequence <= highest(*key)).collect();
    let body = "SELECT heartbeats.node_id AS node_id, heartbeats.boot_id AS boot_id, heartbeats.sequence AS sequence FROM given JOIN heartbeats \
                ON heartbeats.node_id = given.node_id AND heartbeats.boot_id = given.boot_id AND heartbeats.sequence = given.sequence";
    let mut stored = HashSet::new();
    for doubtful in doubtful.chunks(MAX_ROWS) {
        let mut columns = key_columns(&doubtful.iter().map(|(key, _)| *key).collect::<Vec<_>>());
        columns.push(("sequence", Column::Integer(doubtful.iter().map(|(_, sequence)| *sequence).collect())));
        for row in query(transaction, columns, body, "find heartbeats that are stored").await? {
            stored.insert((get::<String>(&row, "node_id")?, get::<String>(&row, "boot_id")?, get(&row, "sequence")?));
        }
    }
    if !stored.is_empty() {
        fresh.retain(|((node, boot), sequence), _| {
            !stored.contains(&((*node).to_owned(), (*boot).to_owned(), *sequence))
        });
    }
    Ok(())
}

/// What was new, in the order of node, boot and sequence.
type Inserted<'a> = Vec<(BootKey<'a>, &'a Row)>;

/// Inserts what is above the marks and not there yet, notes with each boot what that was, and says what it was.
async fn insert<'a>(
    transaction: &DatabaseTransaction,
    deliveries: &[&'a Delivery],
    brought: &mut [Brought<'_>],
    arrived: Instant,
) -> Result<Inserted<'a>, StoreError> {
    let mut fresh = Fresh::new();
    for delivery in deliveries {
        let mark = find(brought, delivery.key()).map_or(0, |at| brought[at].mark.contiguous);
        for row in delivery.rows.iter().filter(|row| row.sequence > mark) {
            fresh.entry((delivery.key(), row.sequence)).or_insert(row);
        }
    }
    remove_stored(transaction, &mut fresh, brought).await?;
    let names = COLUMNS.map(|(name, _)| name);
    let body = format!(
        "INSERT INTO heartbeats (node_id, boot_id, sequence, start_unix_ms, end_unix_ms, start_boottime_ns, end_boottime_ns, \
         counters_since_boottime_ns, {source}, received_at_unix_ms, message, {names}) \
         SELECT node_id, boot_id, sequence, start_unix_ms, end_unix_ms, start_boottime_ns, end_boottime_ns, \
         counters_since_boottime_ns, source, {clock} - passed, message, {values} FROM given WHERE true \
         ON CONFLICT DO NOTHING RETURNING node_id, boot_id, sequence",
        source = heartbeat::Column::Source.as_str(),
        // An answer's age is told by this one: the clocks of replicas differ.
        clock = clock(transaction.get_database_backend()),
        names = names.join(", "),
        values = names.map(|name| format!("NULLIF({name}, {NOT_MEASURED})")).join(", "),
    );
    let fresh: Vec<_> = fresh.into_iter().collect();
    for rows in fresh.chunks(MAX_ROWS) {
        let passed_ms = i64::try_from(arrived.elapsed().as_millis()).unwrap_or(i64::MAX);
        let integers = |value: fn(&Row) -> i64| Column::Integer(rows.iter().map(|(_, row)| value(row)).collect());
        let mut columns = key_columns(&rows.iter().map(|((key, _), _)| *key).collect::<Vec<_>>());
        columns.extend([
            ("sequence", integers(|row| row.sequence)),
            ("start_unix_ms", integers(|row| row.start_unix_ms)),
            ("end_unix_ms", integers(|row| row.end_unix_ms)),
            ("start_boottime_ns", integers(|row| row.start_boottime_ns)),
            ("end_boottime_ns", integers(|row| row.end_boottime_ns)),
            ("counters_since_boottime_ns", integers(|row| row.counters_since_boottime_ns)),
            ("source", Column::Text(rows.iter().map(|(_, row)| row.source.to_owned()).collect())),
            ("passed", Column::Integer(vec![passed_ms; rows.len()])),
            ("message", Column::Bytes(rows.iter().map(|(_, row)| row.message.clone()).collect())),
        ]);
        for (at, name) in names.into_iter().enumerate() {
            columns.push((name, Column::Integer(rows.iter().map(|(_, row)| row.columns[at]).collect())));
        }
        for row in query(transaction, columns, &body, "store heartbeats").await? {
            let (node, boot): (String, String) = (get(&row, "node_id")?, get(&row, "boot_id")?);
            if let Some(at) = find(brought, (&node, &boot)) {
                brought[at].inserted.insert(get(&row, "sequence")?);
            }
        }
    }
    let is_new =
        |key: BootKey<'_>, sequence: &i64| find(brought, key).is_some_and(|at| brought[at].inserted.contains(sequence));
    Ok(fresh
        .into_iter()
        .filter(|((key, sequence), _)| is_new(*key, sequence))
        .map(|((key, _), row)| (key, row))
        .collect())
}

/// What new heartbeats tell of each node.
fn by_node<'a>(inserted: &Inserted<'a>) -> BTreeMap<&'a str, Vec<NodeSample>> {
    let mut new = BTreeMap::<_, Vec<_>>::new();
    for ((node_id, _), row) in inserted {
        if let Some(sample) = &row.sample {
            new.entry(*node_id).or_default().push(sample.clone());
        }
    }
    new
}

/// What rollups are to be told of new heartbeats, before the marks move.
fn of_rollups<'a>(inserted: &Inserted<'a>, brought: &[Brought<'_>]) -> Vec<New<'a>> {
    let new = inserted.iter().map(|((node_id, boot_id), row)| {
        let boot = find(brought, (node_id, boot_id)).map(|at| &brought[at]);
        // What was stored above it may be counted from it now, unless the next one is new as well.
        let may_be_late =
            boot.is_some_and(|boot| boot.mark.highest > row.sequence && !boot.inserted.contains(&(row.sequence + 1)));
        New { node_id, boot_id, sequence: row.sequence, end_unix_ms: row.end_unix_ms, may_be_late }
    });
    new.collect()
}

async fn note_seen(
    transaction: &DatabaseTransaction,
    brought: &[Brought<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let body = "UPDATE nodes SET last_seen_at_unix_ms = given.seen FROM given WHERE nodes.node_id = given.node_id";
    // In the order of their ids, as the boots are.
    let mut nodes: Vec<&str> = brought.iter().map(|boot| boot.key.0).collect();
    nodes.dedup();
    for nodes in nodes.chunks(MAX_ROWS) {
        let seen = Column::Integer(vec![to_unix_ms(now); nodes.len()]);
        let columns =
            vec![("node_id", Column::Text(nodes.iter().map(|node| (*node).to_owned()).collect())), ("seen", seen)];
        execute(transaction, columns, body, "note when nodes were last seen").await?;
    }
    Ok(())
}

fn key_columns(keys: &[BootKey<'_>]) -> Vec<(&'static str, Column)> {
    let (nodes, boots) = keys.iter().map(|(node, boot)| ((*node).to_owned(), (*boot).to_owned())).unzip();
    vec![("node_id", Column::Text(nodes)), ("boot_id", Column::Text(boots))]
}

pub(super) fn get<T: sea_orm::TryGetable>(row: &QueryResult, name: &str) -> Result<T, StoreError> {
    row.try_get("", name).doing("tell a column of its answer")
}

pub(super) async fn query(
    transaction: &DatabaseTransaction,
    columns: Vec<(&'static str, Column)>,
    body: &str,
    doing: &'static str,
) -> Result<Vec<QueryResult>, StoreError> {
    let statement = statement(transaction.get_database_backend(), columns, body);
    transaction.query_all_raw(statement).await.doing(doing)
}

pub(super) async fn execute(
    transaction: &DatabaseTransaction,
    columns: Vec<(&'static str, Column)>,
    body: &str,
    doing: &'static str,
) -> Result<(), StoreError> {
    let statement = statement(transaction.get_database_backend(), columns, body);
    transaction.execute_raw(statement).await.doing(doing)?;
    Ok(())
}
