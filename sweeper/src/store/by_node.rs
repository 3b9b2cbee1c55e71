//! Tables with one row for each node, read page by page.

use super::{Doing as _, Store, StoreError, commit::get};
use heartbeat::NodeId;
use sea_orm::{ConnectionTrait as _, DbBackend, QueryResult, Statement};

/// Rows that are read at once: the texts of states are as large as what they become, and 50,000 are 80 MB.
const PAGE: usize = 2_000;

impl Store {
    /// Hands over these columns of each node whose id begins like this, or of all. A row whose id this version cannot read is left out.
    pub(super) async fn each_node(
        &self,
        (table, columns): (&str, &str),
        prefix: Option<&str>,
        doing: &'static str,
        mut take: impl FnMut(NodeId, &QueryResult) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let backend = self.connection.get_database_backend();
        let [after, like] = if backend == DbBackend::Postgres { ["$1", "$2"] } else { ["?", "?"] };
        // Neither wildcard occurs in what ids begin with; whatever else is found is looked up by nobody.
        let sql = format!(
            "SELECT node_id, {columns} FROM {table} WHERE node_id > {after} AND node_id LIKE {like} ORDER BY node_id LIMIT {PAGE}"
        );
        let like = format!("{}%", prefix.unwrap_or_default());
        let mut last = String::new();
        loop {
            let statement = Statement::from_sql_and_values(backend, &sql, [last.into(), like.clone().into()]);
            let rows = self.connection.query_all_raw(statement).await.doing(doing)?;
            last = rows.last().map(|row| get(row, "node_id")).transpose()?.unwrap_or_default();
            for row in &rows {
                if let Ok(id) = get::<String>(row, "node_id")?.parse() {
                    take(id, row)?;
                }
            }
            if rows.len() < PAGE {
                return Ok(());
            }
        }
    }
}
