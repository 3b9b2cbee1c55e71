//! Which replicas serve, as rows, by the database's clock.
//!
//! A replica says once a minute that it serves, and at each work unit that it takes. One that says nothing for [`LIVE_FOR`] is not counted any more; until then
//! the others leave its share to it for two seconds each time.

use super::{Doing as _, Store, StoreError, clock};
use sea_orm::{ConnectionTrait as _, Statement};
use std::time::Duration;

/// A replica that was heard of within so long serves.
pub(crate) const LIVE_FOR: Duration = Duration::from_secs(180);
/// Rows of replicas that were last heard of so long ago go.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(86_400);

impl Store {
    /// Notes that this replica serves, and says how many do, itself included.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn note_replica(&self, owner: &str) -> Result<usize, StoreError> {
        const DOING: &str = "note that a replica serves";
        let backend = self.connection.get_database_backend();
        let now = clock(backend);
        let note = format!(
            "INSERT INTO replicas (owner, seen_unix_ms) VALUES ($1, {now}) \
             ON CONFLICT (owner) DO UPDATE SET seen_unix_ms = excluded.seen_unix_ms"
        );
        let note = Statement::from_sql_and_values(backend, note, [owner.into()]);
        self.connection.execute_raw(note).await.doing(DOING)?;
        Ok(self.live_replicas().await?.max(1))
    }

    /// How many replicas serve.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) async fn live_replicas(&self) -> Result<usize, StoreError> {
        const DOING: &str = "count the replicas that serve";
        let backend = self.connection.get_database_backend();
        let (now, live_for) = (clock(backend), LIVE_FOR.as_millis());
        let count = format!("SELECT COUNT(*) AS live FROM replicas WHERE seen_unix_ms > {now} - {live_for}");
        let count = self.connection.query_one_raw(Statement::from_string(backend, count)).await.doing(DOING)?;
        let count = count.map(|row| row.try_get::<i64>("", "live")).transpose().doing(DOING)?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default())
    }

    /// Notes that this replica serves no more. Those that ended without a word a day ago are forgotten with it.
    ///
    /// # Errors
    /// If the database does not answer; the replica then counts for a few minutes more.
    pub(crate) async fn forget_replica(&self, owner: &str) -> Result<(), StoreError> {
        let backend = self.connection.get_database_backend();
        let delete = format!(
            "DELETE FROM replicas WHERE owner = $1 OR seen_unix_ms < {} - {}",
            clock(backend),
            FORGOTTEN_AFTER.as_millis()
        );
        let delete = Statement::from_sql_and_values(backend, delete, [owner.into()]);
        self.connection.execute_raw(delete).await.doing("forget a replica")?;
        Ok(())
    }
}
