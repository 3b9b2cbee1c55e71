//! What nodes are asked to measure at once, and what they answered.
//!
//! A question is offered with each acknowledgement to its node for a minute and a half. The answer is a heartbeat that repeats it, stored as any other.

use super::{
    Doing as _, Store, StoreError, StoredHeartbeat, database_now,
    entities::heartbeat as beat,
    from_unix_ms,
    heartbeats::{Columns, unpack},
    to_unix_ms,
};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
};
use std::{collections::HashMap, time::Duration};

/// For so long a question is offered: three intervals of the default length.
const OFFERED_FOR: SignedDuration = SignedDuration::from_secs(90);
/// An answer has come within so long, or none comes: a question's time, a sample and its way.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(100);
/// A clock may be so far off that an answer seems to be of before its question.
const CLOCKS_OFF: SignedDuration = SignedDuration::from_mins(15);
/// The answer is among so many of the newest heartbeats.
const NEWEST: u64 = 8;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "questions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub question: String,
        pub node_id: String,
        pub asked_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A heartbeat that answers a question.
#[derive(Clone, Debug)]
pub struct Answered {
    /// When it arrived, or another one that was stored with it, by the database's clock.
    pub received_at: Timestamp,
    /// It.
    pub heartbeat: StoredHeartbeat,
}

impl Store {
    /// Asks a node for a sample at once. Returns when, by the database's clock.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn ask(&self, node: &NodeId, question: &str) -> Result<Timestamp, StoreError> {
        let now = self.now().await?;
        let new = row::ActiveModel {
            question: Set(question.to_owned()),
            node_id: Set(node.to_string()),
            asked_unix_ms: Set(to_unix_ms(now)),
        };
        row::Entity::insert(new).exec_without_returning(&self.connection).await.doing("ask a node")?;
        Ok(now)
    }

    /// The questions that are offered now, by node; of several to one node the latest.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn open_questions(&self) -> Result<HashMap<String, String>, StoreError> {
        let since = self.now().await?.checked_sub(OFFERED_FOR).unwrap_or(Timestamp::MIN);
        let rows = row::Entity::find()
            .filter(row::Column::AskedUnixMs.gte(to_unix_ms(since)))
            .order_by_asc(row::Column::AskedUnixMs)
            .all(&self.connection)
            .await
            .doing("read what nodes are asked")?;
        Ok(rows.into_iter().map(|row| (row.node_id, row.question)).collect())
    }

    /// What a node answered to a question that was asked then; none if it has not yet.
    ///
    /// # Errors
    /// If the database does not answer or a stored message is damaged.
    pub async fn answer_to(
        &self,
        node: &NodeId,
        question: &str,
        asked_at: Timestamp,
    ) -> Result<Option<Answered>, StoreError> {
        let since = asked_at.checked_sub(CLOCKS_OFF).unwrap_or(Timestamp::MIN);
        let rows: Vec<(i64, String, i64, Vec<u8>)> = beat::Entity::find()
            .select_only()
            .columns([beat::Column::ReceivedAtUnixMs, beat::Column::BootId, beat::Column::Sequence])
            .column(beat::Column::Message)
            .filter(beat::Column::NodeId.eq(node.to_string()))
            .filter(beat::Column::EndUnixMs.gte(to_unix_ms(since)))
            .order_by_desc(beat::Column::EndUnixMs)
            .limit(NEWEST)
            .into_tuple()
            .all(&self.connection)
            .await
            .doing("read what a node answered")?;
        for (received_at, boot, sequence, message) in rows {
            let columns: Columns = (boot, sequence, message);
            let heartbeat = unpack(node, columns)?;
            if heartbeat.heartbeat.answers == question {
                return Ok(Some(Answered { received_at: from_unix_ms(received_at)?, heartbeat }));
            }
        }
        Ok(None)
    }

    /// Where the newest answer of a node's ends that had been received by then, in milliseconds since 1970-01-01 UTC by the node's clock.
    ///
    /// # Errors
    /// If the database does not answer, or the message cannot be read.
    pub async fn answered_until(&self, node: &NodeId, received: Timestamp) -> Result<Option<i64>, StoreError> {
        let rows: Vec<(i64, String, i64, Vec<u8>)> = beat::Entity::find()
            .select_only()
            .columns([beat::Column::EndUnixMs, beat::Column::BootId, beat::Column::Sequence])
            .column(beat::Column::Message)
            .filter(beat::Column::NodeId.eq(node.to_string()))
            .filter(beat::Column::ReceivedAtUnixMs.lte(to_unix_ms(received)))
            .order_by_desc(beat::Column::EndUnixMs)
            .limit(NEWEST)
            .into_tuple()
            .all(&self.connection)
            .await
            .doing("read until when a node answered")?;
        for (end_unix_ms, boot, sequence, message) in rows {
            let columns: Columns = (boot, sequence, message);
            if !unpack(node, columns)?.heartbeat.answers.is_empty() {
                return Ok(Some(end_unix_ms));
            }
        }
        Ok(None)
    }

    /// Deletes questions that nobody waits for any more. Says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_old_questions(&self) -> Result<u64, StoreError> {
        let long_ago = database_now(&self.connection).await?.checked_sub(SignedDuration::from_hours(24));
        let deleted = row::Entity::delete_many()
            .filter(row::Column::AskedUnixMs.lt(to_unix_ms(long_ago.unwrap_or(Timestamp::MIN))))
            .exec(&self.connection)
            .await
            .doing("delete old questions")?;
        Ok(deleted.rows_affected)
    }
}
