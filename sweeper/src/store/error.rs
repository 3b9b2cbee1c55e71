//! What can go wrong with the database.

use sea_orm::{DbErr, RuntimeErr, sqlx::error::DatabaseError};

/// Why the store did not answer. The database's own words are the source.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The URL, file or server cannot be used.
    #[error("the database cannot be opened; check `store.url` and that it exists and may be written")]
    Connect(#[source] DbErr),
    /// The directory of an SQLite file cannot be made.
    #[error("the directory {} cannot be made", path.display())]
    Directory {
        /// The directory.
        path: std::path::PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// An SQLite file cannot be made.
    #[error("the database {} cannot be made", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A step of the schema failed.
    #[error("the database schema cannot be brought up to date")]
    Migrate(#[source] DbErr),
    /// A newer version has changed the schema, and this one may not use it.
    #[error(
        "the schema of the database has {steps} steps that this version of the sweeper does not know, and must know ({needed}) to use it; \
         use the version that made them, or go back by a backup (docs/upgrades.md)"
    )]
    Newer {
        /// How many steps this version does not know.
        steps: usize,
        /// The step that it would have to know, if the newer version said so.
        needed: String,
    },
    /// Two findings would have one id.
    #[error("the id {id} is another finding's; nothing of this sweep is written, and the next one gives another id")]
    Collision {
        /// The id.
        id: String,
    },
    /// A statement failed.
    #[error("the database refused to {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// The database's answer.
        source: DbErr,
    },
    /// A row holds what this version never wrote.
    #[error("{what} in the database cannot be read: {reason}; it was written by another version or damaged")]
    Corrupt {
        /// Which row.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl StoreError {
    /// Whether the database answered that it does not take what it was given: something else it may take. That it is busy, full or about to end is no
    /// such answer.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.answer().and_then(DatabaseError::code).is_some_and(|code| is_about_data(&code))
    }

    /// Whether a row was to be inserted that no partition takes. A check that a row fails has a name, and is something else.
    pub(super) fn is_of_no_partition(&self) -> bool {
        self.has_code(CHECK_VIOLATION) && self.answer().is_some_and(|error| error.constraint().is_none())
    }

    /// Whether a lock was not free in time.
    pub(super) fn is_of_a_lock(&self) -> bool {
        self.has_code(LOCK_NOT_AVAILABLE)
    }

    /// Whether a table is not there.
    pub(super) fn is_of_no_table(&self) -> bool {
        self.has_code(UNDEFINED_TABLE)
    }

    /// Whether PostgreSQL answered with this code.
    fn has_code(&self, code: &str) -> bool {
        self.answer().and_then(DatabaseError::code).is_some_and(|of| of == code)
    }

    /// What the database answered to a statement, if it did.
    fn answer(&self) -> Option<&dyn DatabaseError> {
        let Self::Database {
            source: DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error)),
            ..
        } = self
        else {
            return None;
        };
        error.as_database_error()
    }
}

/// Of PostgreSQL's codes (<https://www.postgresql.org/docs/current/errcodes-appendix.html>) those that are told apart.
const CHECK_VIOLATION: &str = "23514";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const UNDEFINED_TABLE: &str = "42P01";

/// Whether an error code is about the rows that were given.
fn is_about_data(code: &str) -> bool {
    match code.parse::<u32>() {
        // SQLite: too large, a constraint, a wrong type; what is above the last eight bits only says more of it.
        Ok(code) if code < 10_000 => [18, 19, 20].contains(&(code & 0xff)),
        // PostgreSQL's SQLSTATE: data exceptions, constraints, what a trigger raises.
        _ => ["22", "23", "P0"].iter().any(|class| code.starts_with(class)),
    }
}

/// Says what was being done when the database refused.
pub(crate) trait Doing<T> {
    /// Completes "the database refused to …".
    fn doing(self, doing: &'static str) -> Result<T, StoreError>;
}

impl<T> Doing<T> for Result<T, DbErr> {
    fn doing(self, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Database { doing, source })
    }
}

/// An error about a row that this version never wrote.
pub(crate) fn corrupt(what: impl Into<String>, reason: impl ToString) -> StoreError {
    StoreError::Corrupt { what: what.into(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::is_about_data;
    use crate::store::Store;

    #[test]
    fn what_is_about_the_rows_is_told_from_what_is_about_the_database() {
        // A constraint's trigger, a unique key, a number out of range, an exception that a trigger raises.
        assert!(["1811", "2067", "22003", "23505", "P0001"].into_iter().all(is_about_data));
        // Busy, full, an input or output error; shutting down, out of connections or disk, a deadlock, a lock that is not free.
        let others = ["5", "13", "10", "778", "57P01", "53300", "53100", "40P01", "55P03", ""];
        assert!(!others.into_iter().any(is_about_data));
    }

    #[tokio::test]
    async fn no_error_says_who_logs_in_at_the_database_and_by_which_password() {
        // It takes a connection, and hangs up.
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = server.local_addr().expect("an address").port();
        std::thread::spawn(move || while server.accept().is_ok() {});
        let urls = [
            "postgres://ada:hunter2@host:notaport/sweeper".to_owned(),
            "postgres://ada:hunter2@[::1/sweeper".to_owned(),
            "postgres://ada:hunter2#hunter2@host/sweeper".to_owned(),
            "postgres://ada:hunter2/hunter2@host/sweeper".to_owned(),
            "postgresql:ada:hunter2@host/sweeper".to_owned(),
            "postgres://ada:hunter2@host/sweeper?sslmode=none".to_owned(),
            "postgres://host/sweeper?user=ada&password=hunter2&port=none".to_owned(),
            "mysql://ada:hunter2@host/sweeper".to_owned(),
            "sqlite://ada:hunter2@host/sweeper.db?mode=none".to_owned(),
            format!("postgres://ada:hunt%65r2@127.0.0.1:{port}/sweeper"),
        ];
        for url in urls {
            let error = Store::connect(&url).await.expect_err("nobody is there");
            for said in [crate::chain(&error), format!("{error:?}")] {
                let said = said.to_lowercase();
                assert!(["hunter2", "hunt%65r2", "ada"].iter().all(|word| !said.contains(word)), "{url}: {said}");
            }
        }
    }
}
