//! What the database takes from a bare driver: rows of the size of a heartbeat's, one commit each.

use sea_orm::sqlx::{self, Executor as _};
use std::time::{Duration, Instant};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bare (node_id TEXT, sequence BIGINT, end_unix_ms BIGINT, message BLOB, PRIMARY KEY (node_id, sequence))";

/// So many rows a second were committed one by one, by as many connections as the database has a use for.
pub(crate) async fn commits_per_s(url: &str, bytes: usize, length: Duration, round: usize) -> f64 {
    if url.starts_with("postgres") {
        postgres(url, bytes, length, round).await
    } else {
        sqlite(url, bytes, length, round).await
    }
}

async fn postgres(url: &str, bytes: usize, length: Duration, round: usize) -> f64 {
    let pool = sqlx::PgPool::connect(url).await.expect("the database answers");
    let table = TABLE.replace("BLOB", "BYTEA");
    pool.execute(sqlx::AssertSqlSafe(table)).await.expect("a table");
    let began = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8_i64 {
        let pool = pool.clone();
        writers.spawn(async move {
            let mut connection = pool.acquire().await.expect("a connection");
            let mut rows = 0_i64;
            while began.elapsed() < length {
                let insert = sqlx::query("INSERT INTO bare VALUES ($1, $2, $3, $4)");
                let insert =
                    insert.bind(format!("{round}/{writer}")).bind(rows).bind(rows * 30_000).bind(vec![7_u8; bytes]);
                insert.execute(&mut *connection).await.expect("a row");
                rows += 1;
            }
            rows
        });
    }
    let rows: i64 = writers.join_all().await.into_iter().sum();
    rows as f64 / began.elapsed().as_secs_f64()
}

async fn sqlite(url: &str, bytes: usize, length: Duration, round: usize) -> f64 {
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
    let options: SqliteConnectOptions = url.parse().expect("a URL");
    let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    let options = options.busy_timeout(Duration::from_secs(10));
    let pool = sqlx::SqlitePool::connect_with(options).await.expect("the database opens");
    let mut connection = pool.acquire().await.expect("a connection");
    connection.execute(TABLE).await.expect("a table");
    let began = Instant::now();
    let mut rows = 0_i64;
    while began.elapsed() < length {
        let insert = sqlx::query("INSERT INTO bare VALUES (?, ?, ?, ?)");
        let insert = insert.bind(round.to_string()).bind(rows).bind(rows * 30_000).bind(vec![7_u8; bytes]);
        insert.execute(&mut *connection).await.expect("a row");
        rows += 1;
    }
    rows as f64 / began.elapsed().as_secs_f64()
}
