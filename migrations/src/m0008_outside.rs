//! What a provider tells of machines beside their records: what it measured of them, who started them, and how far its trail was read.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                of_machines("usage_answers")
                    .col(schema::big_integer("asked_unix_ms"))
                    .col(schema::text("source"))
                    // All that follows is null where the provider has measured nothing.
                    .col(schema::big_integer_null("from_unix_ms"))
                    .col(schema::big_integer_null("until_unix_ms"))
                    .col(schema::big_integer_null("period_s"))
                    .col(schema::big_integer_null("periods"))
                    .col(schema::big_integer_null("busiest_cpu_millionths"))
                    .col(schema::big_integer_null("busiest_network_bytes_per_s"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                of_machines("launches")
                    .col(schema::text_null("principal"))
                    .col(schema::text_null("via"))
                    .col(schema::big_integer_null("launched_unix_ms"))
                    .col(schema::text_null("event"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("trails")
                    .col(schema::text("provider"))
                    .col(schema::text("account"))
                    .col(schema::text("region"))
                    .col(schema::big_integer("from_unix_ms"))
                    .col(schema::big_integer("until_unix_ms"))
                    .primary_key(Index::create().col("provider").col("account").col("region"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["trails", "launches", "usage_answers"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

/// One row for each machine.
fn of_machines(table: &'static str) -> TableCreateStatement {
    Table::create()
        .table(table)
        .col(schema::text("provider"))
        .col(schema::text("account"))
        .col(schema::text("region"))
        .col(schema::text("instance"))
        .primary_key(Index::create().col("provider").col("account").col("region").col("instance"))
        .take()
}
