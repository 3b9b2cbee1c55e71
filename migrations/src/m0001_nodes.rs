//! Nodes that joined, their boots, and settings that the sweeper makes up itself.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("settings")
                    .col(schema::text("key").primary_key())
                    .col(schema::text("value"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("nodes")
                    .col(schema::text("node_id").primary_key())
                    .col(schema::text("hostname"))
                    .col(schema::text("agent_version"))
                    // The token itself is known to the node alone.
                    .col(schema::text("token_sha256").unique_key())
                    .col(schema::big_integer("joined_at_unix_ms"))
                    .col(schema::big_integer_null("last_seen_at_unix_ms"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("boots")
                    .col(schema::text("node_id"))
                    .col(schema::text("boot_id"))
                    // Every sequence up to this one is stored or lost for good.
                    .col(schema::big_integer("contiguous_sequence"))
                    .col(schema::big_integer("highest_sequence"))
                    .col(schema::big_integer("lost_heartbeats"))
                    .col(schema::big_integer("last_seen_at_unix_ms"))
                    .primary_key(Index::create().col("node_id").col("boot_id"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["boots", "nodes", "settings"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
