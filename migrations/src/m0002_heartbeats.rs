//! Heartbeats: what people and queries ask for in columns, the whole as a compressed message.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("heartbeats")
                    .col(schema::text("node_id"))
                    .col(schema::text("boot_id"))
                    .col(schema::big_integer("sequence"))
                    .col(schema::big_integer("start_unix_ms"))
                    .col(schema::big_integer("end_unix_ms"))
                    .col(schema::big_integer("start_boottime_ns"))
                    .col(schema::big_integer("end_boottime_ns"))
                    .col(schema::big_integer("counters_since_boottime_ns"))
                    // `ebpf`, `proc` or `unknown`.
                    .col(schema::text("collector"))
                    .col(schema::big_integer("received_at_unix_ms"))
                    // The heartbeat of heartbeat.proto, compressed with zstd.
                    .col(schema::blob("message"))
                    .primary_key(Index::create().col("node_id").col("boot_id").col("sequence"))
                    .take(),
            )
            .await?;
        // A node's recent past, for verdicts.
        manager
            .create_index(
                Index::create()
                    .name("heartbeats_by_node_and_end")
                    .table("heartbeats")
                    .col("node_id")
                    .col("end_unix_ms")
                    .take(),
            )
            .await?;
        // Everybody's distant past, for retention.
        manager
            .create_index(Index::create().name("heartbeats_by_end").table("heartbeats").col("end_unix_ms").take())
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("heartbeats").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
