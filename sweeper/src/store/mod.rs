//! The database: one code path for SQLite (the default, one machine) and PostgreSQL (several sweepers).
//!
//! Queries stand by domain, a file each, and take no decisions. SQLite runs in WAL mode with full synchronisation, because an
//! acknowledged heartbeat is forgotten by its sender: what was acknowledged survives a power cut. Writers are serialised by
//! `BEGIN IMMEDIATE` there and by row locks on PostgreSQL.

pub(crate) mod actions;
pub(crate) mod approvals;
mod approvers;
mod audit;
mod by_node;
mod catalogues;
mod commit;
mod cost_days;
mod digests;
mod entities;
mod error;
pub(crate) mod events;
pub(crate) mod evidence;
pub(crate) mod exemptions;
mod file;
pub(crate) mod findings;
mod given;
mod heartbeats;
pub(crate) mod history;
mod identity;
mod join_tokens;
mod launches;
pub(crate) mod moment;
mod node_states;
mod nodes;
pub(crate) mod outbox;
mod partitions;
mod place;
pub(crate) mod plans;
mod prices;
mod protection;
mod questions;
mod redact;
mod replicas;
mod retention;
mod rollups;
mod schema;
pub(crate) mod scopes;
mod settings;
mod spot_prices;
pub(crate) mod sweeps;
mod switch;
mod unit_prices;
mod usage;
mod weeks;

pub use actions::{Action, Direction, NotUndone};
pub use approvers::{Approver, ApproverToken, NotEnrolled};
pub use audit::Doer;
pub use commit::{Delivered, Delivery, Stored};
pub use cost_days::{ChangedDays, CostDay, CostDaysTurn, DayPart};
pub use digests::{DigestMail, MailState, NewDigest, Reader, Recipient, SentDigest};
pub use error::StoreError;
pub(crate) use error::{Doing, corrupt};
pub use events::End;
pub use exemptions::Alone;
pub use heartbeats::StoredHeartbeat;
pub use history::{ListedPlace, MachineVersion, Span, Version};
pub use identity::{Admission, Join, JoinSecret, Joined, Refused};
pub use nodes::TokenHash;
pub use outbox::{Claimed, ClaimedUpdate, Due, MAX_BUNDLE, Message, MessageState, OutboxCounts, SLACK, Told};
pub use plans::Unapproved;
pub use prices::{KeptPrice, KnownPrice};
pub use questions::{ANSWERED_WITHIN, Answered};
#[cfg(test)]
pub(crate) use replicas::LIVE_FOR;
pub use rollups::{NodeHours, PackedRollup, PackedSummary, RolledUp};
pub use schema::Schema;
pub use scopes::{Finished, Held, Lease, WorkUnitState, WorkUnits};
pub use spot_prices::KnownSpot;
pub use sweeps::FinishedSweep;
pub use switch::KillSwitch;

use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
    sqlx::{
        self, Connection as _,
        sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous},
    },
};
use std::{path::Path, str::FromStr as _, time::Duration};

/// How long an SQLite writer waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections of one sweeper. SQLite gains nothing from more readers than cores; PostgreSQL's default limit is 100 for all clients.
const MAX_CONNECTIONS: u32 = 8;

/// The database. Cheap to clone; clones share one pool.
#[derive(Clone, Debug)]
pub struct Store {
    connection: DatabaseConnection,
}

impl Store {
    /// Opens `sqlite://PATH?mode=rwc`, `sqlite::memory:` or `postgres://…`. An SQLite file's directory is made if it is missing; the file can be read
    /// by its owner alone.
    ///
    /// # Errors
    /// If the URL is not understood or the database does not answer within 10 s. No error shows who logs in, nor by which password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let mut options = ConnectOptions::new(url);
        options.max_connections(MAX_CONNECTIONS).acquire_timeout(BUSY_TIMEOUT).connect_timeout(BUSY_TIMEOUT);
        options.sqlx_logging(false);
        options.set_application_name("cloud-sweeper");
        if url.starts_with("sqlite:") {
            let options_of_file = SqliteConnectOptions::from_str(url)
                .map_err(|error| StoreError::Connect(redact::connect_error(url, DbErr::Custom(error.to_string()))))?;
            if url.contains(":memory:") || url.contains("mode=memory") {
                // Every connection would see a database of its own, and the last one to close would end it.
                options.max_connections(1).min_connections(1).idle_timeout(None).max_lifetime(None);
            } else {
                let path = options_of_file.get_filename();
                path.parent().map_or(Ok(()), make_directory)?;
                file::keep_private(path, url.contains("mode=rwc"))?;
            }
            options.map_sqlx_sqlite_opts(|options| {
                options
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full)
                    .busy_timeout(BUSY_TIMEOUT)
                    .foreign_keys(true)
            });
            options.map_sqlx_sqlite_pool_opts(|options| {
                options.after_release(|connection, _| Box::pin(is_out_of_transaction(connection)))
            });
        }
        let connection = Database::connect(options).await;
        let connection = connection.map_err(|error| StoreError::Connect(redact::connect_error(url, error)))?;
        Ok(Self { connection })
    }

    /// The pool, for queries that other domains keep in files of their own.
    #[must_use]
    pub fn connection(&self) -> &DatabaseConnection {
        &self.connection
    }

    /// Begins a transaction that will write: on SQLite it takes the write lock at once, so that it cannot fail half-way for want of it.
    ///
    /// # Errors
    /// If the database does not answer or the lock is not free within 10 s.
    pub async fn begin_write(&self) -> Result<DatabaseTransaction, StoreError> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        self.connection.begin_with_options(options).await.doing("begin a transaction")
    }

    /// Whether all that write wait for each other, whatever they write: on SQLite.
    pub(crate) fn has_one_writer(&self) -> bool {
        self.connection.get_database_backend() == DbBackend::Sqlite
    }

    /// The database's clock, by which tokens and challenges expire.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn now(&self) -> Result<jiff::Timestamp, StoreError> {
        database_now(&self.connection).await
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// If it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.connection.ping().await.doing("answer")
    }
}

/// Whether a connection may be used again. Where the disk is full SQLite itself rolls a transaction back, and sqlx goes on to count it as begun: the next
/// one on that connection would be a savepoint, without the write lock.
async fn is_out_of_transaction(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    // Whatever rollback is under way has been done then.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

/// Makes a directory that only this user can enter, since the database tells what runs on every node.
fn make_directory(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt as _;
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| StoreError::Directory { path: path.to_path_buf(), source })
}

/// The database's clock in milliseconds, as an expression.
fn clock(backend: DbBackend) -> &'static str {
    match backend {
        // Not now(): that is the begin of the transaction.
        DbBackend::Postgres => "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint",
        _ => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    }
}

/// What the database's clock says: replicas whose own clocks differ agree on it.
pub(crate) async fn database_now(connection: &impl ConnectionTrait) -> Result<jiff::Timestamp, StoreError> {
    let backend = connection.get_database_backend();
    let now = Statement::from_string(backend, format!("SELECT {} AS now", clock(backend)));
    let now = connection.query_one_raw(now).await.doing("read the database's clock")?;
    let now = now.map(|row| row.try_get::<i64>("", "now")).transpose().doing("read the database's clock")?;
    from_unix_ms(now.unwrap_or_default())
}

/// A point in time as the database keeps it.
pub(crate) fn to_unix_ms(time: jiff::Timestamp) -> i64 {
    time.as_millisecond()
}

/// A point in time that the database kept.
pub(crate) fn from_unix_ms(unix_ms: i64) -> Result<jiff::Timestamp, StoreError> {
    jiff::Timestamp::from_millisecond(unix_ms).map_err(|error| corrupt("a point in time", error))
}
