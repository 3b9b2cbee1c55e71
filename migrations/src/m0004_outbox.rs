//! The outbox: what people are to be told, written in the transaction of what it tells.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("outbox")
                    .col(schema::text("finding_id"))
                    .col(schema::text("channel"))
                    .col(schema::text("notice"))
                    // pending, sent or failed
                    .col(schema::text("state"))
                    .col(schema::integer("attempts"))
                    .col(schema::big_integer("created_unix_ms"))
                    .col(schema::big_integer("next_attempt_unix_ms"))
                    .col(schema::big_integer("claimed_until_unix_ms"))
                    .col(schema::big_integer_null("sent_unix_ms"))
                    .col(schema::text_null("last_error"))
                    // Never twice for the same finding and channel.
                    .primary_key(Index::create().col("finding_id").col("channel"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create().name("outbox_due").table("outbox").col("state").col("next_attempt_unix_ms").take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("outbox").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
