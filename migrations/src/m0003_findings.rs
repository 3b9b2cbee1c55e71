//! Findings: one class of waste on one resource, open or closed.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("findings")
                    .col(schema::text("id").primary_key())
                    .col(schema::text("class"))
                    .col(schema::text("resource"))
                    // `class|resource` while open, null when closed: at most one open finding of a class on a resource.
                    .col(schema::text_null("open_key").unique_key())
                    .col(schema::big_integer("since_unix_ms"))
                    .col(schema::big_integer("opened_unix_ms"))
                    .col(schema::big_integer("confirmed_unix_ms"))
                    .col(schema::integer("confirmed_sweeps"))
                    .col(schema::big_integer_null("closed_unix_ms"))
                    .col(schema::text_null("closed_because"))
                    .col(schema::big_integer_null("cost_micro_usd_per_hour"))
                    .col(schema::text_null("cost_unknown_because"))
                    .col(schema::text("evidence"))
                    .col(schema::text_null("proposal"))
                    .col(schema::text_null("not_proposed"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("findings").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
