//! What a node's heartbeats come to so far: one row for a node, written with each heartbeat, read by each sweep.

use sea_orm_migration::{prelude::*, schema, sea_orm::DbBackend};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Rows that each heartbeat changes in place: PostgreSQL finds room for the next version of a row beside it, and touches no index.
const CHANGED_IN_PLACE: [&str; 3] = ["node_state", "boots", "nodes"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("node_state")
                    .col(schema::text("node_id").primary_key())
                    // The end of its newest heartbeat.
                    .col(schema::big_integer("newest_unix_ms"))
                    // As far as the state looks back.
                    .col(schema::big_integer_null("quiet_since_unix_ms"))
                    .col(schema::big_integer_null("last_work_unix_ms"))
                    // JSON, for the version that wrote it: another one makes it anew from the heartbeats.
                    .col(schema::text("state"))
                    .take(),
            )
            .await?;
        set_fill(manager, "SET (fillfactor = 60)").await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        set_fill(manager, "RESET (fillfactor)").await?;
        manager.drop_table(Table::drop().table("node_state").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

async fn set_fill(manager: &SchemaManager<'_>, to: &str) -> Result<(), DbErr> {
    if manager.get_database_backend() == DbBackend::Postgres {
        for table in CHANGED_IN_PLACE {
            manager.get_connection().execute_unprepared(&format!("ALTER TABLE {table} {to}")).await?;
        }
    }
    Ok(())
}
