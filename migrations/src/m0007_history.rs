//! History: what each resource was while, and while of what a listing spoke.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("resource_versions")
                    .col(schema::text("kind"))
                    .col(schema::text("resource"))
                    .col(schema::big_integer("from_unix_ms"))
                    .col(schema::text("provider"))
                    .col(schema::text("account"))
                    .col(schema::text("region"))
                    .col(schema::big_integer_null("until_unix_ms"))
                    // `kind|resource` while it lasts, null afterwards: one resource is one thing at a time.
                    .col(schema::text_null("lasting_key").unique_key())
                    .col(schema::text("sha256"))
                    .col(schema::text("record"))
                    .primary_key(Index::create().col("kind").col("resource").col("from_unix_ms"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("resource_versions_of_scope")
                    .table("resource_versions")
                    .col("provider")
                    .col("account")
                    .col("region")
                    .col("kind")
                    .col("until_unix_ms")
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("listing_spans")
                    .col(schema::text("provider"))
                    .col(schema::text("account"))
                    .col(schema::text("region"))
                    .col(schema::text("kind"))
                    .col(schema::big_integer("from_unix_ms"))
                    .col(schema::big_integer("until_unix_ms"))
                    .col(schema::text_null("failed"))
                    .primary_key(
                        Index::create().col("provider").col("account").col("region").col("kind").col("from_unix_ms"),
                    )
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("listing_spans").take()).await?;
        manager.drop_table(Table::drop().table("resource_versions").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
