//! What protects idle machines, as it was last read, and in which order they are asked about.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("protection_answers")
                    .col(schema::text("provider"))
                    .col(schema::text("account"))
                    .col(schema::text("region"))
                    .col(schema::text("instance"))
                    // Its place in the queue: when it was last asked about, or was first to be.
                    .col(schema::big_integer("queued_unix_ms"))
                    // Null until it was answered once; of the two that follow, also where the provider does not say.
                    .col(schema::big_integer_null("read_unix_ms"))
                    .col(schema::boolean_null("stop_protected"))
                    .col(schema::boolean_null("termination_protected"))
                    .primary_key(Index::create().col("provider").col("account").col("region").col("instance"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("protection_answers").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
