//! Plans as they are made, one row each, and the one that a finding has now in a column of its own.
//!
//! Those of sweepers of the version before are emptied: they seal other content, and a new plan is made at the next sweep that confirms the finding.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("plans")
                    .col(schema::text("content_hash").primary_key())
                    .col(schema::text("finding_id"))
                    .col(schema::big_integer("made_unix_ms"))
                    .col(schema::big_integer("valid_until_unix_ms"))
                    .col(schema::text("content"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create().name("plans_by_finding").table("plans").col("finding_id").col("made_unix_ms").take(),
            )
            .await?;
        manager.alter_table(Table::alter().table("findings").add_column(schema::text_null("plan")).take()).await?;
        let empty = "UPDATE findings SET proposal = NULL, not_proposed = 'a new plan is made at the next sweep' \
                     WHERE proposal IS NOT NULL";
        manager.get_connection().execute_unprepared(empty).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("findings").drop_column("plan").take()).await?;
        manager.drop_table(Table::drop().table("plans").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
