//! What is past its retention goes, a few thousand rows at a time: no lock lasts, and whoever stores heartbeats gets a turn in between. Days of heartbeats
//! go whole ([`super::partitions`]).

use super::{Doing as _, Store, StoreError, to_unix_ms};
use jiff::Timestamp;
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use std::time::Duration;

/// Rows that go at once.
const AT_ONCE: u64 = 5_000;
/// Whoever waits for SQLite's write lock tries again within so long.
const PAUSE: Duration = Duration::from_millis(20);
/// Names the deleting among PostgreSQL's advisory locks ("retain" in ASCII): of several replicas one does it.
const LOCK: i64 = 0x7265_7461_696e;

impl Store {
    /// Deletes heartbeats whose interval ended before `time`, and says how many; on PostgreSQL only of those that lie in no day of their own
    /// ([`Store::drop_heartbeat_days_before`]). The marks of their boots stay.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_heartbeats_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for table in self.tables_without_days().await? {
            deleted += match self.delete_before(&table, "end_unix_ms", time, "delete old heartbeats").await {
                // Another replica has dropped it since.
                Err(error) if error.is_of_no_table() => 0,
                done => done?,
            };
        }
        Ok(deleted)
    }

    /// Deletes the states of nodes whose newest heartbeat ended before `time`, and says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_node_states_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.delete_before("node_state", "newest_unix_ms", time, "delete the states of retired nodes").await
    }

    /// Deletes what is kept of the protection of machines that were not to be asked about since `time`, and says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_protection_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.delete_before("protection_answers", "queued_unix_ms", time, "delete what protected machines").await
    }

    pub(super) async fn delete_before(
        &self,
        table: &str,
        column: &'static str,
        time: Timestamp,
        doing: &'static str,
    ) -> Result<u64, StoreError> {
        let before_unix_ms = to_unix_ms(time);
        let mut deleted = 0;
        loop {
            let transaction = self.begin_write().await?;
            let backend = transaction.get_database_backend();
            let id = if backend == DbBackend::Postgres { "ctid" } else { "rowid" };
            if backend == DbBackend::Postgres {
                let lock = Statement::from_string(backend, format!("SELECT pg_try_advisory_xact_lock({LOCK}) AS mine"));
                let mine = transaction.query_one_raw(lock).await.doing(doing)?;
                let mine = mine.map(|row| row.try_get::<bool>("", "mine")).transpose().doing(doing)?;
                if mine != Some(true) {
                    return Ok(deleted);
                }
            }
            let delete = format!(
                "DELETE FROM {table} WHERE {id} IN (SELECT {id} FROM {table} WHERE {column} < {before_unix_ms} LIMIT {AT_ONCE})"
            );
            let gone = transaction.execute_unprepared(&delete).await.doing(doing)?.rows_affected();
            transaction.commit().await.doing(doing)?;
            deleted += gone;
            if gone < AT_ONCE {
                return Ok(deleted);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
