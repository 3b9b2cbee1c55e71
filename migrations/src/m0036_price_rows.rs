//! Which rows of a price list a price rests on, in the list's own words.
//!
//! A sweeper of the version before writes and reads none of it: what it has read has no rows.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("prices").add_column(schema::text_null("source_rows")).take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("prices").drop_column("source_rows").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
