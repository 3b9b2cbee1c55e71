//! What nodes did in five minutes and in an hour, and which of these are to be made (anew).

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Whose, how long in seconds, and its begin.
const KEY: [&str; 3] = ["node_id", "tier", "start_unix_ms"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut rollups = keyed("rollups");
        rollups
            .col(schema::big_integer("heartbeats"))
            // JSON, packed with zstd.
            .col(schema::blob("rollup"));
        manager.create_table(rollups).await?;
        // Everybody's distant past, for retention.
        manager.create_index(index("rollups_by_start", "rollups", "start_unix_ms")).await?;
        let mut due = keyed("rollups_due");
        due.col(schema::big_integer("due_unix_ms"));
        manager.create_table(due).await?;
        manager.create_index(index("rollups_due_by_time", "rollups_due", "due_unix_ms")).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("rollups_due").take()).await?;
        manager.drop_table(Table::drop().table("rollups").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

fn keyed(name: &'static str) -> TableCreateStatement {
    let (mut table, mut key) = (Table::create(), Index::create());
    table.table(name).col(schema::text(KEY[0])).col(schema::big_integer(KEY[1])).col(schema::big_integer(KEY[2]));
    for column in KEY {
        key.col(column);
    }
    table.primary_key(&mut key);
    table
}

fn index(name: &'static str, table: &'static str, column: &'static str) -> IndexCreateStatement {
    Index::create().name(name).table(table).col(column).take()
}
