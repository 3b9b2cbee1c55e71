//! Summaries: what an hour's rollup tells of its machine as a whole, beside the rollup, and of how many heartbeats it is.
//!
//! A sweeper of the version before writes neither: where it makes a rollup anew, it is of another number of heartbeats than its summary.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // JSON, packed with zstd.
        let summary = schema::blob_null("summary");
        manager.alter_table(Table::alter().table("rollups").add_column(summary).take()).await?;
        let heartbeats = schema::big_integer_null("summary_heartbeats");
        manager.alter_table(Table::alter().table("rollups").add_column(heartbeats).take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("rollups").drop_column("summary_heartbeats").take()).await?;
        manager.alter_table(Table::alter().table("rollups").drop_column("summary").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
