//! Sweeps: when they ran and what they reported.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("sweeps")
                    .col(schema::text("id").primary_key())
                    .col(schema::big_integer("started_unix_ms"))
                    .col(schema::big_integer("finished_unix_ms"))
                    .col(schema::boolean("complete"))
                    .col(schema::text("report"))
                    .take(),
            )
            .await?;
        manager.create_index(Index::create().name("sweeps_started").table("sweeps").col("started_unix_ms").take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("sweeps").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
