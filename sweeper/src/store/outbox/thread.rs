//! Which thread a message stands in: that of the message which it answers.

use super::{PENDING, row};
use crate::store::{Doing as _, StoreError, from_unix_ms};
use jiff::Timestamp;
use sea_orm::{ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _};
use std::collections::HashMap;

/// Links of a thread that are followed up.
const MAX_THREAD: usize = 100;

/// What has become of the message that another one answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It waits itself, until then at least.
    Waits(Timestamp),
    /// It was sent, and this names the thread that it stands in.
    Sent(String),
    /// It never will be, or nobody kept what names it.
    Unnamed,
}

/// What has become of the messages of these events on a channel. A statement for each link of their threads, however many there are.
pub(super) async fn answered(
    connection: &impl ConnectionTrait,
    events: Vec<String>,
    channel: &str,
) -> Result<HashMap<String, Answered>, StoreError> {
    let mut rows: HashMap<String, row::Model> = HashMap::new();
    let mut wanted = events.clone();
    for _ in 0..=MAX_THREAD {
        wanted.retain(|event| !rows.contains_key(event));
        if wanted.is_empty() {
            break;
        }
        let found = row::Entity::find()
            .filter(row::Column::Channel.eq(channel))
            .filter(row::Column::EventId.is_in(std::mem::take(&mut wanted)))
            .all(connection)
            .await
            .doing("look up what messages answer")?;
        wanted.extend(found.iter().filter_map(|row| row.answers.clone()));
        rows.extend(found.into_iter().map(|row| (row.event_id.clone(), row)));
    }
    let of = |event: String| Ok((event.clone(), of_one(&rows, &event)?));
    events.into_iter().map(of).collect()
}

fn of_one(rows: &HashMap<String, row::Model>, event: &str) -> Result<Answered, StoreError> {
    let Some(mut row) = rows.get(event) else { return Ok(Answered::Unnamed) };
    if row.state == PENDING {
        // Not until a claim on it ends, if there is one: what is claimed is being sent, and that takes a second.
        return Ok(Answered::Waits(from_unix_ms(row.next_attempt_unix_ms)?));
    }
    // Up to the message that began the thread: each link was in it when it was sent. A finding that comes and goes for a day makes a few.
    for _ in 0..MAX_THREAD {
        let above = row.answers.as_ref().and_then(|above| rows.get(above));
        match above.filter(|above| above.receipt.is_some()) {
            Some(above) => row = above,
            None => break,
        }
    }
    Ok(row.receipt.clone().map_or(Answered::Unnamed, Answered::Sent))
}
