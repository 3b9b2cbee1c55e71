//! The kill switch, and since when the database has been the same without interruption.

use super::{
    Doing as _, Store, StoreError,
    audit::{self, Doer, NewEntry},
    clock, corrupt, from_unix_ms,
};
use crate::audit::Deed;
use jiff::Timestamp;
use sea_orm::{ConnectionTrait, Statement};
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};

/// For so long nobody may have served before what was approved then is void: a backup that is restored is older than that.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// The kill switch, as it was last set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KillSwitch {
    /// Nothing is carried out while it is.
    pub is_on: bool,
    /// Who set it.
    pub who: String,
    /// Why, if they said so.
    pub because: Option<String>,
    /// When.
    pub at: Timestamp,
}

impl Store {
    /// The kill switch.
    ///
    /// # Errors
    /// If the database does not answer; the switch counts as on then.
    pub async fn kill_switch(&self) -> Result<KillSwitch, StoreError> {
        switch(self.connection()).await
    }

    /// Sets the kill switch. An action that is about to be called is decided before this, or sees it.
    ///
    /// # Errors
    /// If the database does not answer; the switch is as it was then.
    pub async fn set_kill_switch(&self, is_on: bool, because: Option<&str>, by: &Doer) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        set(&transaction, is_on, because, by).await?;
        transaction.commit().await.doing("commit the kill switch")
    }

    /// Notes that a sweeper serves. Where none did for ten minutes, or ever, all that was approved before is void: the database may be another one, or a version approved it that carried nothing out. Says since
    /// when what was approved counts.
    pub(crate) async fn note_continuity(&self, by: &Doer) -> Result<Timestamp, StoreError> {
        const DOING: &str = "note that a sweeper serves";
        if paused(self.connection()).await?.is_some() {
            self.note_pause(by).await?;
        }
        let backend = self.connection().get_database_backend();
        let sql = format!("UPDATE continuity SET seen_unix_ms = {}", clock(backend));
        self.connection().execute_raw(Statement::from_string(backend, sql)).await.doing(DOING)?;
        void_before(self.connection()).await
    }

    /// Voids all approvals so far, because nobody served for too long, and writes that down; whoever comes second finds it done.
    async fn note_pause(&self, by: &Doer) -> Result<(), StoreError> {
        const DOING: &str = "void what was approved before a pause";
        let transaction = self.begin_write().await?;
        audit::lock(&transaction).await?;
        let Some(pause) = paused(&transaction).await? else { return Ok(()) };
        let backend = transaction.get_database_backend();
        let sql =
            format!("UPDATE continuity SET void_before_unix_ms = {now}, seen_unix_ms = {now}", now = clock(backend));
        transaction.execute_raw(Statement::from_string(backend, sql)).await.doing(DOING)?;
        // Before the first one there is nothing that anybody could have approved.
        if let Pause::For { seconds } = pause {
            tracing::warn!(seconds, "no sweeper served for so long: what was approved before is void");
            let detail = BTreeMap::from([("seconds".to_owned(), seconds.to_string())]);
            audit::append(&transaction, NewEntry { by, did: Deed::Paused, on: "database", detail }).await?;
        }
        transaction.commit().await.doing(DOING)
    }

    /// Voids all approvals so far and switches the kill switch on: the database is older than what this sweeper saw of it.
    pub(crate) async fn note_restored(&self, because: &str, by: &Doer) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        set(&transaction, true, Some(because), by).await?;
        let backend = transaction.get_database_backend();
        let sql =
            format!("UPDATE continuity SET void_before_unix_ms = {now}, seen_unix_ms = {now}", now = clock(backend));
        transaction.execute_raw(Statement::from_string(backend, sql)).await.doing("void the approvals")?;
        let entry = NewEntry { by, did: Deed::Restored, on: "database", detail: BTreeMap::new() };
        audit::append(&transaction, entry).await?;
        transaction.commit().await.doing("commit that the database was restored")
    }

    /// The hash of one entry of the audit log; none if there is no such entry.
    pub(crate) async fn audit_hash(&self, sequence: u64) -> Result<Option<String>, StoreError> {
        let entries = self.audit(sequence).await?;
        Ok(entries.into_iter().next().filter(|kept| kept.sequence == sequence).map(|kept| kept.hash))
    }
}

async fn set(
    transaction: &impl ConnectionTrait,
    is_on: bool,
    because: Option<&str>,
    by: &Doer,
) -> Result<(), StoreError> {
    let did = if is_on { Deed::SwitchedOn } else { Deed::SwitchedOff };
    let detail = because.map(|because| ("because".to_owned(), because.to_owned())).into_iter().collect();
    // First: what is about to be called waits for this, or this for that.
    audit::append(transaction, NewEntry { by, did, on: "kill switch", detail }).await?;
    let backend = transaction.get_database_backend();
    let sql = format!("UPDATE kill_switch SET is_on = $1, who = $2, because = $3, at_unix_ms = {}", clock(backend));
    let values = [is_on.into(), by.who.clone().into(), because.map(str::to_owned).into()];
    let done = transaction.execute_raw(Statement::from_sql_and_values(backend, sql, values)).await;
    if done.doing("set the kill switch")?.rows_affected() == 1 {
        Ok(())
    } else {
        Err(corrupt("the kill switch", "its row is missing"))
    }
}

/// Why what was approved before is void.
enum Pause {
    /// No sweeper has served yet.
    Ever,
    /// None did for so long.
    For { seconds: i64 },
}

/// Whether nobody has served for too long, up to now.
async fn paused(connection: &impl ConnectionTrait) -> Result<Option<Pause>, StoreError> {
    const DOING: &str = "read when a sweeper last served";
    let backend = connection.get_database_backend();
    let sql = format!("SELECT seen_unix_ms, {} AS now FROM continuity WHERE id = 1", clock(backend));
    let row = connection.query_one_raw(Statement::from_string(backend, sql)).await.doing(DOING)?;
    let row = row.ok_or_else(|| corrupt("when a sweeper last served", "its row is missing"))?;
    let (seen, now): (i64, i64) = (row.try_get("", "seen_unix_ms").doing(DOING)?, row.try_get("", "now").doing(DOING)?);
    let longest = i64::try_from(LONGEST_PAUSE.as_millis()).unwrap_or(i64::MAX);
    Ok(match (seen, now.saturating_sub(seen)) {
        (_, pause) if pause <= longest => None,
        (..=0, _) => Some(Pause::Ever),
        (_, pause) => Some(Pause::For { seconds: pause / 1_000 }),
    })
}

/// See [`Store::kill_switch`].
pub(super) async fn switch(connection: &impl ConnectionTrait) -> Result<KillSwitch, StoreError> {
    const DOING: &str = "read the kill switch";
    let backend = connection.get_database_backend();
    let sql = "SELECT is_on, who, because, at_unix_ms FROM kill_switch WHERE id = 1";
    let row = connection.query_one_raw(Statement::from_string(backend, sql)).await.doing(DOING)?;
    let row = row.ok_or_else(|| corrupt("the kill switch", "its row is missing"))?;
    Ok(KillSwitch {
        is_on: row.try_get("", "is_on").doing(DOING)?,
        who: row.try_get("", "who").doing(DOING)?,
        because: row.try_get("", "because").doing(DOING)?,
        at: from_unix_ms(row.try_get("", "at_unix_ms").doing(DOING)?)?,
    })
}

/// Since when what was approved counts.
pub(super) async fn void_before(connection: &impl ConnectionTrait) -> Result<Timestamp, StoreError> {
    const DOING: &str = "read since when approvals count";
    let backend = connection.get_database_backend();
    let sql = "SELECT void_before_unix_ms FROM continuity WHERE id = 1";
    let row = connection.query_one_raw(Statement::from_string(backend, sql)).await.doing(DOING)?;
    let row = row.ok_or_else(|| corrupt("since when approvals count", "its row is missing"))?;
    from_unix_ms(row.try_get("", "void_before_unix_ms").doing(DOING)?)
}
