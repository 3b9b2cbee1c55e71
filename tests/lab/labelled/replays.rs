//! What was decided of a site's machines, decided again from either database.

use crate::{postgres::Postgres, sweeper::Sweeper};
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};
use serde_json::Value;
use sweeper::store::Store;

/// What a finding's decisions are made again from.
const TABLES: [&str; 2] = ["findings", "evidence"];

/// Has every decision made again from a site's own database, and from the other kind of database, to which the rows of its findings and their evidence
/// are carried. How many there were.
///
/// # Panics
///
/// When one is decided otherwise, or anything of the two answers differs by a byte.
pub(super) async fn from_both(sweeper: &Sweeper, store: &Store) -> usize {
    let is_postgres = store.connection().get_database_backend() == DbBackend::Postgres;
    let server = if is_postgres { None } else { Some(Postgres::shared().await) };
    let url = match &server {
        Some(server) => server.database().await,
        None => format!("sqlite://{}?mode=rwc", sweeper.folder().join("other.db").display()),
    };
    let config = format!("[store]\nurl = \"{url}\"\n[aws]\nenabled = \"no\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n");
    // It does not serve: a sweep of its own would decide something more.
    let other = Sweeper::prepare(&sweeper.folder().join("other"), &config, &[]);
    let target = Store::connect(&url).await.expect("the other database");
    target.migrate().await.expect("the other database's schema");
    for table in TABLES {
        carry(store, &target, table).await;
    }
    let (count, _) = sweeper.replays().await;
    other.replays().await;
    let [here, there] =
        [sweeper, &other].map(|sweeper| async { sweeper.run(&["replay", "--output", "json"]).await.stdout });
    let (here, there) = (here.await, there.await);
    assert!(here == there, "{}\n{}", String::from_utf8_lossy(&here), String::from_utf8_lossy(&there));
    count
}

/// Carries all rows of a table from a database of one kind to one of the other, as JSON, with bytes in hexadecimal digits.
async fn carry(from: &Store, to: &Store, table: &str) {
    let columns = |store: &Store| {
        let (connection, table) = (store.connection().clone(), table.to_owned());
        async move {
            let sql = match connection.get_database_backend() {
                DbBackend::Postgres => format!(
                    "SELECT json_agg(json_build_array(column_name, data_type = 'bytea'))::text AS told FROM information_schema.columns WHERE table_name = '{table}'"
                ),
                _ => format!(
                    "SELECT json_group_array(json_array(name, json(iif(upper(type) = 'BLOB', 'true', 'false')))) AS told FROM pragma_table_info('{table}')"
                ),
            };
            let mut columns: Vec<(String, bool)> =
                serde_json::from_value(told(&connection, sql).await).expect("columns");
            columns.sort();
            columns
        }
    };
    let known = columns(from).await;
    assert_eq!(known, columns(to).await, "{table} has the same columns in both");
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    let rows = match from.connection().get_database_backend() {
        DbBackend::Postgres => format!("SELECT COALESCE(json_agg(t), '[]')::text AS told FROM {table} t"),
        _ => {
            let value = |(name, is_bytes): &(String, bool)| {
                if *is_bytes { format!("'{name}', '\\x' || hex({name})") } else { format!("'{name}', {name}") }
            };
            let values: Vec<_> = known.iter().map(value).collect();
            format!("SELECT json_group_array(json_object({})) AS told FROM {table}", values.join(", "))
        }
    };
    let rows = told(from.connection(), rows).await;
    let insert = match to.connection().get_database_backend() {
        DbBackend::Postgres => {
            format!(
                "INSERT INTO {table} ({names}) SELECT {names} FROM json_populate_recordset(NULL::{table}, $1::json)"
            )
        }
        _ => {
            let value = |(name, is_bytes): &(String, bool)| {
                let value = format!("json_extract(value, '$.{name}')");
                if *is_bytes { format!("unhex(substr({value}, 3))") } else { value }
            };
            let values: Vec<_> = known.iter().map(value).collect();
            format!("INSERT INTO {table} ({names}) SELECT {} FROM json_each($1)", values.join(", "))
        }
    };
    let backend = to.connection().get_database_backend();
    let statement = Statement::from_sql_and_values(backend, insert, [rows.to_string().into()]);
    let carried = to.connection().execute_raw(statement).await.expect("the rows are carried").rows_affected();
    assert_eq!(carried, rows.as_array().map_or(0, Vec::len) as u64, "each row of {table}");
}

/// The JSON in the column `told` of a query's only row.
async fn told(connection: &impl sea_orm::ConnectionTrait, sql: String) -> Value {
    let statement = Statement::from_string(connection.get_database_backend(), sql);
    let row = connection.query_one_raw(statement).await.expect("an answer").expect("a row");
    let text: String = row.try_get("", "told").expect("text");
    serde_json::from_str(&text).expect("JSON")
}
