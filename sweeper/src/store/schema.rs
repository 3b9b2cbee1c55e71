//! Which version of the schema this program uses: its own, an older one that it brings up to date, or a newer one that says that it may.

use super::{Doing as _, Store, StoreError};
use migrations::{Migrator, MigratorTrait as _, NEEDED};
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use std::collections::BTreeSet;

/// Names the schema's lock among PostgreSQL's advisory locks ("sweeper" in ASCII).
const MIGRATION_LOCK: i64 = 0x0073_7765_6570_6572;

/// A database's schema, beside what this version of the program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// It has all steps that this version knows, and no other.
    Current,
    /// Steps are missing, as many as this; none is there that this version does not know.
    Older(usize),
    /// It has all steps that this version knows, and as many as this beyond; and a sweeper of this version may use it, as the newer one left word.
    Newer(usize),
}

impl Store {
    /// Brings the schema up to date, in one transaction, unless it is newer already and may be used as it is. Of several sweepers (or commands) that start at once on one
    /// database, one does it and the others wait: on SQLite for the write lock, on PostgreSQL for an advisory lock.
    ///
    /// # Errors
    /// If a step fails, or the schema is newer and this version may not use it; nothing has changed then.
    pub async fn migrate(&self) -> Result<Schema, StoreError> {
        let transaction = self.begin_write().await?;
        if transaction.get_database_backend() == DbBackend::Postgres {
            let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
            let lock = Statement::from_string(DbBackend::Postgres, lock);
            transaction.execute_raw(lock).await.map_err(StoreError::Migrate)?;
        }
        Migrator::install(&transaction).await.map_err(StoreError::Migrate)?;
        let newer = match compare(&transaction).await? {
            newer @ Schema::Newer(_) => newer,
            Schema::Current | Schema::Older(_) => {
                Migrator::up(&transaction, None).await.map_err(StoreError::Migrate)?;
                leave_word(&transaction).await?;
                Schema::Current
            }
        };
        transaction.commit().await.map_err(StoreError::Migrate)?;
        Ok(newer)
    }

    /// How the schema compares with what this version knows. Changes nothing, so that a user who may only read can ask.
    ///
    /// # Errors
    /// If the database does not answer, or is of a newer version that this one may not use.
    pub async fn schema(&self) -> Result<Schema, StoreError> {
        // Creates no table, unlike the other way to ask which steps there are. An error is one of newer steps, or of the connection, which the comparison meets as well.
        if let Ok(missing) = Migrator::get_pending_migrations_read_only(self.connection()).await {
            return Ok(if missing.is_empty() { Schema::Current } else { Schema::Older(missing.len()) });
        }
        compare(self.connection()).await
    }
}

/// What there is, which is known to exist as a table, against what this version knows.
async fn compare(database: &impl ConnectionTrait) -> Result<Schema, StoreError> {
    let doing = "read which steps of the schema there are";
    let steps = Statement::from_string(database.get_database_backend(), "SELECT version FROM seaql_migrations");
    let there = database.query_all_raw(steps).await.doing(doing)?;
    let there: BTreeSet<String> =
        there.iter().map(|row| row.try_get("", "version")).collect::<Result<_, _>>().doing(doing)?;
    let known: BTreeSet<String> = Migrator::migrations().iter().map(|step| step.name().to_owned()).collect();
    let (unknown, missing) = (there.difference(&known).count(), known.difference(&there).count());
    if unknown == 0 {
        return Ok(if missing == 0 { Schema::Current } else { Schema::Older(missing) });
    }
    let needed = if there.contains(FIRST) { needed(database).await? } else { None };
    match needed {
        Some(step) if missing == 0 && known.contains(&step) => Ok(Schema::Newer(unknown)),
        needed => Err(StoreError::Newer { steps: unknown, needed: needed.unwrap_or_else(|| "all of them".to_owned()) }),
    }
}

/// The step that brought the table in which word is left.
const FIRST: &str = "m0037_needed_step";

async fn needed(database: &impl ConnectionTrait) -> Result<Option<String>, StoreError> {
    let doing = "read which step of the schema a sweeper must know";
    let word = Statement::from_string(database.get_database_backend(), "SELECT step FROM needed_step WHERE id = 1");
    let word = database.query_one_raw(word).await.doing(doing)?;
    word.map(|row| row.try_get("", "step")).transpose().doing(doing)
}

/// Leaves word for sweepers of before. A greater step stays.
async fn leave_word(database: &impl ConnectionTrait) -> Result<(), StoreError> {
    let word = "INSERT INTO needed_step (id, step) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET step = excluded.step WHERE excluded.step > needed_step.step";
    let word = Statement::from_sql_and_values(database.get_database_backend(), word, [NEEDED.into()]);
    database.execute_raw(word).await.map_err(StoreError::Migrate)?;
    Ok(())
}
