//! Heartbeats by day on PostgreSQL: a partition for each UTC day, by the ends of intervals. It is made before its day begins, and dropped once all of it is past its
//! retention. SQLite has one table, and deletes from it.
//!
//! Whatever ended before the first day that is kept lies in one more partition, however old it is, so that spools that are delivered late make no days. It is
//! replaced whenever a day is dropped. There is no DEFAULT partition: each day that is attached would have it searched, and taken from everybody meanwhile. A day that
//! nobody has made is made when a heartbeat of it comes ([`Store::make_days_of`]), which costs a commit nothing but where it happens.
//!
//! A day is made as a table by itself and attached, which lets everybody read and write on. Dropping takes `heartbeats` from everybody for some milliseconds. It is waited for
//! for [`LOCK_TIMEOUT`] at most, with all who come meanwhile; then it is left to the next round. It takes the whole before its parts, as everybody does, so that nobody
//! waits for somebody who waits for them. `DETACH … CONCURRENTLY` would wait for less: but it runs in no transaction, and where it is broken off
//! somebody must find that and finish it. One replica at a time does either, by an advisory lock.

use super::{Doing as _, Store, StoreError, commit::get, corrupt, to_unix_ms};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, Statement};
use std::collections::BTreeSet;

/// Days that are made ahead of today.
const AHEAD: i64 = 7;
/// Longer than PostgreSQL takes to end an autovacuum that is in the way (`deadlock_timeout`, 1 s).
const LOCK_TIMEOUT: &str = "2s";
/// Names the making and dropping among PostgreSQL's advisory locks ("parts" in ASCII).
const LOCK: i64 = 0x0070_6172_7473;
const DAY_MS: i64 = 86_400_000;
/// How days are written in names of tables.
const FORMAT: &str = "%Y%m%d";

/// A day of UTC, by how many lie between 1970-01-01 and it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Day(i64);

impl Day {
    fn of(unix_ms: i64) -> Self {
        Self(unix_ms.div_euclid(DAY_MS))
    }

    fn begin_unix_ms(self) -> i64 {
        self.0.saturating_mul(DAY_MS)
    }

    fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    fn name(self) -> Result<String, StoreError> {
        let begin = Timestamp::from_millisecond(self.begin_unix_ms());
        Ok(begin.map_err(|error| corrupt("the day of a heartbeat", error))?.strftime(FORMAT).to_string())
    }

    fn parse(name: &str) -> Option<Self> {
        let begin = Date::strptime(FORMAT, name).ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(Self::of(to_unix_ms(begin.timestamp())))
    }
}

/// A partition of `heartbeats`, named by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partition {
    /// What ended on this day.
    Of(Day),
    /// What ended before this day.
    Before(Day),
}

impl Partition {
    /// By the name of its table; `None` of one that this module did not make.
    fn parse(table: &str) -> Option<Self> {
        let name = table.strip_prefix("heartbeats_")?;
        match name.strip_prefix("before_") {
            Some(day) => Day::parse(day).map(Self::Before),
            None => Day::parse(name).map(Self::Of),
        }
    }

    fn table(self) -> Result<String, StoreError> {
        Ok(match self {
            Self::Of(day) => format!("heartbeats_{}", day.name()?),
            Self::Before(day) => format!("heartbeats_before_{}", day.name()?),
        })
    }

    /// The first day behind it.
    fn end(self) -> Day {
        match self {
            Self::Of(day) => day.plus(1),
            Self::Before(day) => day,
        }
    }

    fn holds(self, day: Day) -> bool {
        day < self.end() && (matches!(self, Self::Before(_)) || self == Self::Of(day))
    }

    async fn attach(self, transaction: &DatabaseTransaction) -> Result<(), StoreError> {
        let (table, to) = (self.table()?, self.end().begin_unix_ms());
        let from = match self {
            Self::Of(day) => day.begin_unix_ms().to_string(),
            Self::Before(_) => "MINVALUE".to_owned(),
        };
        let sql = format!(
            "CREATE TABLE {table} (LIKE heartbeats INCLUDING DEFAULTS, PRIMARY KEY (node_id, boot_id, sequence)); \
             CREATE INDEX {table}_by_node_and_end ON {table} (node_id, end_unix_ms); \
             ALTER TABLE heartbeats ATTACH PARTITION {table} FOR VALUES FROM ({from}) TO ({to})"
        );
        transaction.execute_unprepared(&sql).await.doing("make a partition of heartbeats")?;
        Ok(())
    }
}

impl Store {
    /// Makes the days that begin soon by the database's clock, and says how many were missing. SQLite has none.
    ///
    /// # Errors
    /// If the database does not answer, or somebody holds `heartbeats` for longer than 2 s.
    pub async fn make_heartbeat_days(&self) -> Result<u64, StoreError> {
        let today = Day::of(to_unix_ms(self.now().await?));
        self.make_days((0..=AHEAD).map(|days| today.plus(days)).collect()).await
    }

    /// Makes the days on which these intervals ended. A time that no calendar has gets none: the database goes on to refuse it.
    pub(super) async fn make_days_of(&self, ends_unix_ms: impl Iterator<Item = i64>) -> Result<u64, StoreError> {
        self.make_days(ends_unix_ms.map(Day::of).filter(|day| day.plus(1).name().is_ok()).collect()).await
    }

    async fn make_days(&self, days: BTreeSet<Day>) -> Result<u64, StoreError> {
        if !self.has_partitions() {
            return Ok(0);
        }
        let transaction = self.begin_write().await?;
        // Whoever has it waits for others no longer than twice the timeout.
        let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
        transaction.execute_unprepared(&lock).await.doing("wait for who makes partitions")?;
        wait_shortly(&transaction).await?;
        let there = partitions(&transaction).await?;
        let mut made = 0;
        for day in days.into_iter().filter(|day| !there.iter().any(|partition| partition.holds(*day))) {
            Partition::Of(day).attach(&transaction).await?;
            made += 1;
        }
        transaction.commit().await.doing("make partitions of heartbeats")?;
        Ok(made)
    }

    /// Drops the days of heartbeats that were over before `time`, and says how many partitions went. None if another replica is at it, or if somebody holds
    /// `heartbeats` for longer than 2 s: then it is for the next round. SQLite has none.
    ///
    /// # Errors
    /// If the database does not answer; nothing is dropped then.
    pub async fn drop_heartbeat_days_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        if !self.has_partitions() {
            return Ok(0);
        }
        match self.drop_days_before(Day::of(to_unix_ms(time))).await {
            Err(error) if error.is_of_a_lock() => {
                tracing::info!("days of heartbeats are past their retention and in use; they are dropped later");
                Ok(0)
            }
            done => done,
        }
    }

    async fn drop_days_before(&self, first: Day) -> Result<u64, StoreError> {
        let doing = "drop partitions of heartbeats";
        let transaction = self.begin_write().await?;
        wait_shortly(&transaction).await?;
        let lock =
            Statement::from_string(DbBackend::Postgres, format!("SELECT pg_try_advisory_xact_lock({LOCK}) AS mine"));
        let mine = transaction.query_one_raw(lock).await.doing(doing)?;
        if mine.map(|row| get(&row, "mine")).transpose()? != Some(true) {
            return Ok(0);
        }
        // The one before all days may end with the first that is kept already.
        let is_past = |partition: &Partition| partition.end() <= first && *partition != Partition::Before(first);
        let (past, kept): (Vec<_>, Vec<_>) = partitions(&transaction).await?.into_iter().partition(is_past);
        if past.is_empty() {
            return Ok(0);
        }
        let tables = past.iter().map(|partition| partition.table()).collect::<Result<Vec<_>, _>>()?.join(", ");
        transaction.execute_unprepared("LOCK TABLE ONLY heartbeats IN ACCESS EXCLUSIVE MODE").await.doing(doing)?;
        transaction.execute_unprepared(&format!("DROP TABLE {tables}")).await.doing(doing)?;
        if !kept.iter().any(|partition| matches!(partition, Partition::Before(_))) {
            Partition::Before(first).attach(&transaction).await?;
        }
        transaction.commit().await.doing(doing)?;
        Ok(u64::try_from(past.len()).unwrap_or(u64::MAX))
    }

    /// The tables of heartbeats that lie in no day of their own, and are to be deleted row by row.
    pub(super) async fn tables_without_days(&self) -> Result<Vec<String>, StoreError> {
        if !self.has_partitions() {
            return Ok(vec!["heartbeats".to_owned()]);
        }
        let partitions = partitions(&self.connection).await?.into_iter();
        partitions.filter(|partition| matches!(partition, Partition::Before(_))).map(Partition::table).collect()
    }

    fn has_partitions(&self) -> bool {
        self.connection.get_database_backend() == DbBackend::Postgres
    }
}

/// From here on no lock is waited for longer than [`LOCK_TIMEOUT`].
async fn wait_shortly(transaction: &DatabaseTransaction) -> Result<(), StoreError> {
    let timeout = format!("SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'");
    transaction.execute_unprepared(&timeout).await.doing("begin to make or drop partitions")?;
    Ok(())
}

/// The partitions that there are. What somebody else attached is not told, and left alone.
async fn partitions(connection: &impl ConnectionTrait) -> Result<Vec<Partition>, StoreError> {
    let sql = "SELECT relname::text AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid \
               WHERE inhparent = 'heartbeats'::regclass ORDER BY relname";
    let rows = connection.query_all_raw(Statement::from_string(DbBackend::Postgres, sql)).await;
    let names = rows.doing("list the partitions of heartbeats")?;
    let names = names.iter().map(|row| get::<String>(row, "name")).collect::<Result<Vec<_>, _>>()?;
    Ok(names.iter().filter_map(|name| Partition::parse(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_known_by_its_name_and_holds_its_days() {
        let day = Day::of(1_795_478_400_000);
        for (partition, name) in
            [(Partition::Of(day), "heartbeats_20261124"), (Partition::Before(day), "heartbeats_before_20261124")]
        {
            assert_eq!(partition.table().ok().as_deref(), Some(name));
            assert_eq!(Partition::parse(name), Some(partition));
        }
        for other in
            ["heartbeats", "heartbeats_", "heartbeats_2026", "heartbeats_20261324", "heartbeats_of_nobody", "nodes"]
        {
            assert_eq!(Partition::parse(other), None, "{other}");
        }
        assert_eq!(Day::of(day.begin_unix_ms() - 1), day.plus(-1));
        assert_eq!(Day::of(day.begin_unix_ms() + DAY_MS - 1), day);
        assert_eq!([-1, 0, 1].map(|days| Partition::Of(day).holds(day.plus(days))), [false, true, false]);
        assert_eq!([-1, 0, 1].map(|days| Partition::Before(day).holds(day.plus(days))), [true, false, false]);
        assert!(Day::of(i64::MAX).name().is_err() && Day::of(i64::MIN).begin_unix_ms() < 0, "no overflow");
    }
}
