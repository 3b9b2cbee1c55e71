//! Copies: when it was written that a snapshot is made for an action, from when on the action counts for the cap of a day.
//!
//! A sweeper of the version before reads and writes none of it: what it has copied counts once it is called, as before.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = schema::big_integer_null("copied_unix_ms");
        manager.alter_table(Table::alter().table("actions").add_column(column).take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("actions").drop_column("copied_unix_ms").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
