//! Evidence: what each decision about a finding rested on, appended and never changed.
//!
//! `findings.evidence` stays, in its old form, and is written at each confirmation: sweepers of the version before learn from it how far a finding is
//! confirmed. They leave the new columns alone.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("evidence")
                    .col(schema::text("finding_id"))
                    .col(schema::integer("number"))
                    .col(schema::big_integer("at_unix_ms"))
                    // `opened`, `changed`, `planned`, `interrupted`, `resolved` or `gone`.
                    .col(schema::text("event"))
                    // The class that was detected, and the version of its detector.
                    .col(schema::text("detector"))
                    .col(schema::integer("detector_version"))
                    // JSON with a tag that names its form, packed by zstd.
                    .col(schema::blob("inputs"))
                    // JSON.
                    .col(schema::text("conclusion"))
                    .primary_key(Index::create().col("finding_id").col("number"))
                    .take(),
            )
            .await?;
        // SQLite adds one column a statement.
        for column in [
            schema::big_integer_null("confirmed_until_unix_ms"),
            schema::integer_null("records"),
            // When, and how far, the last record of it reaches.
            schema::big_integer_null("recorded_unix_ms"),
            schema::big_integer_null("recorded_until_unix_ms"),
        ] {
            manager.alter_table(Table::alter().table("findings").add_column(column).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["recorded_until_unix_ms", "recorded_unix_ms", "records", "confirmed_until_unix_ms"] {
            manager.alter_table(Table::alter().table("findings").drop_column(column).take()).await?;
        }
        manager.drop_table(Table::drop().table("evidence").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
