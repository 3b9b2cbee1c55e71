//! What nodes are asked to measure at once, by whom and when.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("questions")
                    // 32 random hexadecimal digits.
                    .col(schema::text("question").primary_key())
                    .col(schema::text("node_id"))
                    .col(schema::big_integer("asked_unix_ms"))
                    .take(),
            )
            .await?;
        manager
            .create_index(Index::create().name("questions_by_time").table("questions").col("asked_unix_ms").take())
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("questions").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
