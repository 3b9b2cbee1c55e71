//! Digests: up to when each list was told, the mails of it, and who reads it.
//!
//! A sweeper of the version before knows none of these tables, and sends no digest.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut lists = Table::create();
        lists
            .table("digest_lists")
            .col(schema::text("list").primary_key())
            // The scheduled time of the last digest that was written, or passed over because the list was new.
            .col(schema::big_integer("told_unix_ms"));
        manager.create_table(lists).await?;
        manager
            .create_table(
                Table::create()
                    .table("digests")
                    .col(schema::text("list"))
                    // When it was due.
                    .col(schema::big_integer("due_unix_ms"))
                    // The bare address of who gets it.
                    .col(schema::text("address"))
                    // The same as it was configured, perhaps with a name.
                    .col(schema::text("recipient"))
                    // What it says, as JSON.
                    .col(schema::text("content"))
                    // pending, sent, failed or withdrawn
                    .col(schema::text("state"))
                    .col(schema::integer("attempts"))
                    .col(schema::big_integer("created_unix_ms"))
                    .col(schema::big_integer("next_attempt_unix_ms"))
                    .col(schema::big_integer("claimed_until_unix_ms"))
                    .col(schema::big_integer_null("sent_unix_ms"))
                    .col(schema::text_null("last_error"))
                    // The Message-ID.
                    .col(schema::text_null("receipt"))
                    // Never twice to the same reader.
                    .primary_key(Index::create().col("list").col("due_unix_ms").col("address"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create().name("digests_due").table("digests").col("state").col("next_attempt_unix_ms").take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("digest_readers")
                    .col(schema::text("list"))
                    .col(schema::text("address"))
                    // SHA-256 of the token in this reader's link; none before the first link was sent.
                    .col(schema::text_null("token_sha256"))
                    // Since when this reader wants no more of it; none if that is not so.
                    .col(schema::big_integer_null("left_unix_ms"))
                    .primary_key(Index::create().col("list").col("address"))
                    .take(),
            )
            .await?;
        let mut by_token = Index::create();
        by_token.name("digest_readers_token").table("digest_readers").col("token_sha256").unique();
        manager.create_index(by_token).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["digest_readers", "digests", "digest_lists"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
