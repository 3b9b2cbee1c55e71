//! Replicas: which sweepers serve, so that each takes its share of the work units that are due.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = Table::create();
        table
            .table("replicas")
            // As it is called in leases and logs.
            .col(schema::text("owner").primary_key())
            // When it was last heard of, by the database's own clock.
            .col(schema::big_integer("seen_unix_ms"));
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("replicas").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
