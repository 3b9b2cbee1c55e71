//! When a node's heartbeats were last refused, and why: a node whose clock is off is not silent.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Null is: none were. SQLite adds one column a statement.
        for column in [schema::big_integer_null("refused_unix_ms"), schema::text_null("refused_because")] {
            manager.alter_table(Table::alter().table("nodes").add_column(column).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["refused_because", "refused_unix_ms"] {
            manager.alter_table(Table::alter().table("nodes").drop_column(column).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
