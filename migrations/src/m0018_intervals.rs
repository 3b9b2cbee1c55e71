//! What a node did, in columns beside its packed heartbeat; and on PostgreSQL heartbeats by day, so that a day is dropped and not deleted row by row.
//!
//! PostgreSQL cannot partition a table in place. So the table of before becomes the first partition as it is, under the bound of all that it may hold: not a row is
//! copied. It is read once, to see that it keeps to that bound, and whoever stores heartbeats waits meanwhile.
//!
//! Sweepers of the version before go on to write and to read by the old name; what they write has none of the new columns. They would delete old rows
//! by `ctid`, which names a row within one partition only: they would delete others as well. A rule lets them delete nothing; it goes with the next step
//! that is written when none of them can run any more.

use sea_orm_migration::{
    prelude::*,
    schema,
    sea_orm::{DbBackend, Statement},
};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Cumulative counters as the heartbeat has them; absent is not measured.
const COLUMNS: [&str; 6] =
    ["cpu_busy_ns", "workload_cpu_ns", "workload_execs", "disk_bytes", "network_bytes", "gpu_busy_ns"];
const DAY_MS: i64 = 86_400_000;
/// So many days are made beyond the first, for sweepers of the version before, which make none.
const DAYS_AHEAD: i64 = 7;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column a statement.
        for column in COLUMNS {
            let mut table = Table::alter();
            manager.alter_table(table.table("heartbeats").add_column(schema::big_integer_null(column)).take()).await?;
        }
        if manager.get_database_backend() == DbBackend::Postgres {
            partition(manager).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Postgres {
            unite(manager).await?;
        }
        for column in COLUMNS {
            manager.alter_table(Table::alter().table("heartbeats").drop_column(column).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

async fn partition(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    // The first day of which nothing is stored yet, or today; and the days from there.
    let days = format!(
        "WITH first AS (SELECT GREATEST(COALESCE(MAX(end_unix_ms) / {DAY_MS} + 1, 0), \
         (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint / {DAY_MS}) AS day FROM heartbeats) \
         SELECT day, to_char(to_timestamp(day * 86400) AT TIME ZONE 'UTC', 'YYYYMMDD') AS date \
         FROM (SELECT generate_series(day, day + {DAYS_AHEAD}) AS day FROM first) AS days ORDER BY day"
    );
    let days = connection.query_all_raw(Statement::from_string(DbBackend::Postgres, days)).await?;
    let days: Vec<(i64, String)> =
        days.iter().map(|row| Ok((row.try_get("", "day")?, row.try_get("", "date")?))).collect::<Result<_, DbErr>>()?;
    let Some((first, date)) = days.first() else { return Ok(()) };
    let before = format!("heartbeats_before_{date}");
    connection.execute_unprepared(&format!("ALTER TABLE heartbeats RENAME TO {before}")).await?;
    for index in ["pkey", "by_node_and_end", "by_end"] {
        connection.execute_unprepared(&format!("ALTER INDEX heartbeats_{index} RENAME TO {before}_{index}")).await?;
    }
    // No key: PostgreSQL enforces one across partitions only where it holds the bound. Each partition has its own.
    let table = format!("CREATE TABLE heartbeats (LIKE {before}) PARTITION BY RANGE (end_unix_ms)");
    connection.execute_unprepared(&table).await?;
    connection
        .execute_unprepared("CREATE INDEX heartbeats_by_node_and_end ON heartbeats (node_id, end_unix_ms)")
        .await?;
    attach(connection, &before, "MINVALUE", *first).await?;
    for (day, date) in &days {
        let table = format!("heartbeats_{date}");
        let create = format!("CREATE TABLE {table} (LIKE heartbeats, PRIMARY KEY (node_id, boot_id, sequence))");
        connection.execute_unprepared(&create).await?;
        let index = format!("CREATE INDEX {table}_by_node_and_end ON {table} (node_id, end_unix_ms)");
        connection.execute_unprepared(&index).await?;
        attach(connection, &table, &(day * DAY_MS).to_string(), day + 1).await?;
    }
    connection
        .execute_unprepared("CREATE RULE heartbeats_go_by_partition AS ON DELETE TO heartbeats DO INSTEAD NOTHING")
        .await?;
    Ok(())
}

async fn attach(connection: &SchemaManagerConnection<'_>, table: &str, from: &str, to_day: i64) -> Result<(), DbErr> {
    let to = to_day * DAY_MS;
    let attach = format!("ALTER TABLE heartbeats ATTACH PARTITION {table} FOR VALUES FROM ({from}) TO ({to})");
    connection.execute_unprepared(&attach).await?;
    Ok(())
}

/// One table again, which takes as long as to copy it.
async fn unite(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let steps = [
        "LOCK TABLE heartbeats IN ACCESS EXCLUSIVE MODE",
        "CREATE TABLE heartbeats_united (LIKE heartbeats)",
        // One that a sweeper of the version before stored on two days counts once.
        "INSERT INTO heartbeats_united SELECT DISTINCT ON (node_id, boot_id, sequence) * FROM heartbeats",
        "DROP TABLE heartbeats",
        "ALTER TABLE heartbeats_united RENAME TO heartbeats",
        "ALTER TABLE heartbeats ADD PRIMARY KEY (node_id, boot_id, sequence)",
        "CREATE INDEX heartbeats_by_node_and_end ON heartbeats (node_id, end_unix_ms)",
        "CREATE INDEX heartbeats_by_end ON heartbeats (end_unix_ms)",
    ];
    for step in steps {
        manager.get_connection().execute_unprepared(step).await?;
    }
    Ok(())
}
