//! In which hours of the week nodes were quiet, as it was last added up: kept, since a node's takes hundreds of rollups.

use super::{
    Doing as _, Store, StoreError,
    commit::{execute, get},
    corrupt, from_unix_ms,
    given::{Column, MAX_ROWS},
    to_unix_ms,
};
use crate::snapshot::Week;
use heartbeat::NodeId;
use jiff::Timestamp;
use sea_orm::QueryResult;
use std::collections::HashMap;

impl Store {
    /// What is kept of the nodes whose ids begin like this, or of all, and when it was made. What this version cannot read is left out, and made anew.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn weeks(&self, prefix: Option<&str>) -> Result<HashMap<NodeId, (Timestamp, Week)>, StoreError> {
        let mut weeks = HashMap::new();
        let take = |id, row: &QueryResult| {
            let made = from_unix_ms(get(row, "made_unix_ms")?)?;
            if let Ok(week) = serde_json::from_str(&get::<String>(row, "week")?) {
                weeks.insert(id, (made, week));
            }
            Ok(())
        };
        self.each_node(("weeks", "made_unix_ms, week"), prefix, "read the weeks of nodes", take).await?;
        Ok(weeks)
    }

    /// Keeps what was made at this moment, in the place of what was made before.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_weeks(&self, weeks: &[(NodeId, Week)], at: Timestamp) -> Result<(), StoreError> {
        let body = "INSERT INTO weeks (node_id, made_unix_ms, week) SELECT node_id, made_unix_ms, week FROM given WHERE true \
                    ON CONFLICT (node_id) DO UPDATE SET made_unix_ms = excluded.made_unix_ms, week = excluded.week";
        for weeks in weeks.chunks(MAX_ROWS) {
            let texts: Result<Vec<String>, _> = weeks.iter().map(|(_, week)| serde_json::to_string(week)).collect();
            let columns = vec![
                ("node_id", Column::Text(weeks.iter().map(|(node, _)| node.to_string()).collect())),
                ("made_unix_ms", Column::Integer(vec![to_unix_ms(at); weeks.len()])),
                ("week", Column::Text(texts.map_err(|error| corrupt("a node's week", error))?)),
            ];
            let transaction = self.begin_write().await?;
            execute(&transaction, columns, body, "keep the weeks of nodes").await?;
            transaction.commit().await.doing("commit the weeks of nodes")?;
        }
        Ok(())
    }

    /// Deletes what was made before `time` of nodes that nobody asks about any more, and says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_weeks_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.delete_before("weeks", "made_unix_ms", time, "delete the weeks of retired nodes").await
    }
}
