//! Events: what happened to a finding. Messages are made of events, and keep what the channel answered.
//!
//! `outbox.finding_id` holds an event's id from now on: that of a finding's opening is the finding's own, so that what a sweeper of the version before wrote
//! stays right, and it delivers what this one writes.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("events")
                    .col(schema::text("id").primary_key())
                    .col(schema::text("finding_id"))
                    .col(schema::text("kind"))
                    .col(schema::big_integer("at_unix_ms"))
                    .take(),
            )
            .await?;
        manager
            .create_index(Index::create().name("events_of_finding").table("events").col("finding_id").take())
            .await?;
        // `receipt` is what a later message answers, null while there is none; `answers` the event whose message on the same channel this one answers.
        for column in [schema::text_null("receipt"), schema::text_null("answers")] {
            manager.alter_table(Table::alter().table("outbox").add_column(column).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["answers", "receipt"] {
            manager.alter_table(Table::alter().table("outbox").drop_column(column).take()).await?;
        }
        manager.drop_table(Table::drop().table("events").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
