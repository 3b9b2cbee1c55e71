//! In which hours of the week nodes were quiet, as it was last added up from their rollups.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("weeks")
                    .col(schema::text("node_id").primary_key())
                    .col(schema::big_integer("made_unix_ms"))
                    // JSON.
                    .col(schema::text("week"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("weeks").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
