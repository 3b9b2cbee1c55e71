//! Summaries: what an hour's rollup tells of its machine as a whole, beside the rollup, and of which rollup it is: its heartbeats and its bytes.
//!
//! A sweeper of the version before writes none of them: where it makes a rollup anew, the summary is of another one, and is not read.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const OF: [&str; 2] = ["summary_heartbeats", "summary_of_bytes"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // JSON, packed with zstd.
        let summary = schema::blob_null("summary");
        manager.alter_table(Table::alter().table("rollups").add_column(summary).take()).await?;
        for name in OF {
            let of = schema::big_integer_null(name);
            manager.alter_table(Table::alter().table("rollups").add_column(of).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in OF.into_iter().chain(["summary"]) {
            manager.alter_table(Table::alter().table("rollups").drop_column(name).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
