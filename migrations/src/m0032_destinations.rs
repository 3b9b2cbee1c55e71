//! Destinations: in which channel a message stands, and why there.
//!
//! A sweeper of the version before reads and writes none of these columns: it sends all that it finds to the one channel that it knows, and what it writes
//! goes to that of whoever sends it.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            // The channel in Slack, by its name or id; none is the one that is configured for all.
            schema::text_null("destination"),
            // Why there, in one sentence.
            schema::text_null("routed_because"),
            // The channel that it was meant for and that did not take it.
            schema::text_null("diverted_from"),
        ] {
            manager.alter_table(Table::alter().table("outbox").add_column(column).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["diverted_from", "routed_because", "destination"] {
            manager.alter_table(Table::alter().table("outbox").drop_column(column).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
