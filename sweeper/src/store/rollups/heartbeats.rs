//! The heartbeats that rollups are made of: which these are, and as many of them in memory at once as fit.

use super::{Key, periods_given, places_given};
use crate::{
    rollup::{Adding, Period, Rollup, Tier},
    store::{
        StoreError,
        commit::{get, query},
        given::{Column, MAX_ROWS},
    },
};
use heartbeat::BootId;
use sea_orm::{DatabaseTransaction, QueryResult};
use std::collections::BTreeMap;

/// Most heartbeats of one node and period that are counted: one in 0.3 s. Of more, which only somebody sends who makes them up, the newest.
const MAX_HEARTBEATS: i64 = 1_024;
/// So many bytes of packed heartbeats are read at once.
const MAX_BYTES: usize = 8 << 20;

/// A heartbeat's place: node, boot, sequence.
pub(super) type Place = (String, String, i64);

/// A heartbeat that a rollup is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Length of its packed message.
    bytes: usize,
    /// The end of its interval, by which PostgreSQL finds its day.
    end_unix_ms: i64,
    /// Whether it is only what the next one is counted from.
    is_earlier: bool,
}

/// How many of these are read at once; the first one always, however large it is.
pub(super) fn fitting(places: &[(Place, Found)]) -> usize {
    let mut bytes = 0;
    let fits = places.iter().take(MAX_ROWS).take_while(|(_, found)| {
        let fits = bytes == 0 || bytes + found.bytes <= MAX_BYTES;
        bytes += found.bytes;
        fits
    });
    fits.count()
}

/// Of how many of these periods the heartbeats are read at once; of one at least.
pub(super) fn read_together(keys: &[Key], places: &BTreeMap<Key, BTreeMap<Place, Found>>) -> usize {
    let (mut rows, mut bytes) = (0, 0);
    let fits = keys.iter().take_while(|key| {
        let of_key = places.get(key);
        rows += of_key.map_or(0, BTreeMap::len);
        bytes += of_key.into_iter().flatten().map(|(_, found)| found.bytes).sum::<usize>();
        rows <= MAX_ROWS && bytes <= MAX_BYTES
    });
    fits.count().max(1)
}

/// What heartbeats come to; they are given by boot and sequence. Those that are `read` already are not read again.
pub(super) async fn of_places(
    transaction: &DatabaseTransaction,
    period: Period,
    places: &[(Place, Found)],
    read: &BTreeMap<Place, Vec<u8>>,
) -> Result<Option<Rollup>, StoreError> {
    let mut adding = Adding::new(period);
    let mut at = 0;
    while at < places.len() {
        let few = &places[at..at + fitting(&places[at..])];
        at += few.len();
        let is_read = few.iter().any(|(place, _)| read.contains_key(place));
        let now = if is_read { BTreeMap::new() } else { messages(transaction, few).await? };
        let messages = if is_read { read } else { &now };
        for (place, found) in few {
            let Some(message) = messages.get(place) else { continue };
            let (node, boot, sequence) = place;
            // What cannot be read is as if it had been lost.
            match (boot.parse::<BootId>(), heartbeat::unpack_one(message)) {
                (Ok(boot), Ok(heartbeat)) if found.is_earlier => adding.earlier(boot, heartbeat),
                (Ok(boot), Ok(heartbeat)) => adding.heartbeat(boot, heartbeat),
                _ => tracing::error!(
                    node,
                    boot,
                    sequence,
                    "a stored heartbeat is damaged; its rollup is made without it"
                ),
            }
        }
    }
    Ok(adding.rollup())
}

/// The heartbeats that ended in these periods, by boot and sequence.
pub(super) async fn ended_within(
    transaction: &DatabaseTransaction,
    keys: &[Key],
) -> Result<BTreeMap<Key, BTreeMap<Place, Found>>, StoreError> {
    let body = format!(
        "SELECT * FROM (SELECT heartbeats.node_id AS node_id, given.start AS start, heartbeats.boot_id AS boot_id, heartbeats.sequence AS sequence, heartbeats.end_unix_ms AS end_unix_ms, \
         CAST(LENGTH(heartbeats.message) AS BIGINT) AS bytes, ROW_NUMBER() OVER (PARTITION BY heartbeats.node_id, given.start \
         ORDER BY heartbeats.end_unix_ms DESC, heartbeats.sequence DESC, heartbeats.boot_id) AS number \
         FROM given JOIN heartbeats ON heartbeats.node_id = given.node_id AND heartbeats.end_unix_ms > given.start \
         AND heartbeats.end_unix_ms <= given.start + given.tier * 1000) AS numbered WHERE number <= {MAX_HEARTBEATS}"
    );
    let mut places = BTreeMap::<Key, BTreeMap<Place, Found>>::new();
    for row in query(transaction, periods_given(keys), &body, "find the heartbeats of periods").await? {
        let node: String = get(&row, "node_id")?;
        let key = (node.clone(), Period { tier: Tier::FiveMinutes, start_unix_ms: get(&row, "start")? });
        let found = found(&row, false)?;
        places.entry(key).or_default().insert((node, get(&row, "boot_id")?, get(&row, "sequence")?), found);
    }
    Ok(places)
}

/// Adds to each heartbeat the one before it of its boot, from which it is counted.
pub(super) async fn add_earlier(
    transaction: &DatabaseTransaction,
    places: &mut BTreeMap<Key, BTreeMap<Place, Found>>,
) -> Result<(), StoreError> {
    let mut asked = BTreeMap::<Place, Vec<Key>>::new();
    for (key, of_key) in &*places {
        for place in of_key.keys() {
            let before = (place.0.clone(), place.1.clone(), place.2 - 1);
            if !of_key.contains_key(&before) {
                asked.entry(place.clone()).or_default().push(key.clone());
            }
        }
    }
    let body = "SELECT given.node_id AS node_id, given.boot_id AS boot_id, given.sequence AS later, heartbeats.sequence AS sequence, heartbeats.end_unix_ms AS end_unix_ms, \
                CAST(LENGTH(heartbeats.message) AS BIGINT) AS bytes FROM given JOIN heartbeats \
                ON heartbeats.node_id = given.node_id AND heartbeats.boot_id = given.boot_id \
                AND heartbeats.sequence = (SELECT MAX(earlier.sequence) FROM heartbeats earlier WHERE earlier.node_id = given.node_id \
                AND earlier.boot_id = given.boot_id AND earlier.sequence < given.sequence)";
    let wanted: Vec<Place> = asked.keys().cloned().collect();
    for few in wanted.chunks(MAX_ROWS) {
        for row in query(transaction, places_given(few.iter().cloned()), body, "find earlier heartbeats").await? {
            let (node, boot): (String, String) = (get(&row, "node_id")?, get(&row, "boot_id")?);
            let found = found(&row, true)?;
            let earlier = (node.clone(), boot.clone(), get(&row, "sequence")?);
            for key in asked.get(&(node, boot, get(&row, "later")?)).into_iter().flatten() {
                places.entry(key.clone()).or_default().entry(earlier.clone()).or_insert(found);
            }
        }
    }
    Ok(())
}

fn found(row: &QueryResult, is_earlier: bool) -> Result<Found, StoreError> {
    let bytes = usize::try_from(get::<i64>(row, "bytes")?).unwrap_or(0);
    Ok(Found { bytes, end_unix_ms: get(row, "end_unix_ms")?, is_earlier })
}

/// The packed messages at these places.
pub(super) async fn messages(
    transaction: &DatabaseTransaction,
    places: &[(Place, Found)],
) -> Result<BTreeMap<Place, Vec<u8>>, StoreError> {
    let body = "SELECT heartbeats.node_id AS node_id, heartbeats.boot_id AS boot_id, heartbeats.sequence AS sequence, message \
                FROM given JOIN heartbeats ON heartbeats.node_id = given.node_id AND heartbeats.boot_id = given.boot_id \
                AND heartbeats.sequence = given.sequence AND heartbeats.end_unix_ms = given.end_unix_ms";
    let mut columns = places_given(places.iter().map(|(place, _)| place.clone()));
    columns.push(("end_unix_ms", Column::Integer(places.iter().map(|(_, found)| found.end_unix_ms).collect())));
    let rows = query(transaction, columns, body, "read heartbeats of a period").await?;
    rows.iter()
        .map(|row| Ok(((get(row, "node_id")?, get(row, "boot_id")?, get(row, "sequence")?), get(row, "message")?)))
        .collect()
}
