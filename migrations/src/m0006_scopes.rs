//! Scopes: what one replica sweeps at a time under a lease, and how its last sweep went.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("scopes")
                    // `aws`, or `none` for the nodes that no scope covers; their account and region are empty.
                    .col(schema::text("provider"))
                    .col(schema::text("account"))
                    .col(schema::text("region"))
                    // Who sweeps it, null if nobody does.
                    .col(schema::text_null("lease_owner"))
                    // Grows with each claim: what was read under an earlier one is not written any more.
                    .col(schema::big_integer("lease_epoch"))
                    // By the database's own clock; 0 if nobody sweeps it.
                    .col(schema::big_integer("lease_until_unix_ms"))
                    // The scheduled time that it was last swept for, null if it never was.
                    .col(schema::big_integer_null("swept_for_unix_ms"))
                    .col(schema::big_integer_null("started_unix_ms"))
                    .col(schema::big_integer_null("finished_unix_ms"))
                    .col(schema::boolean_null("complete"))
                    .col(schema::big_integer_null("last_complete_unix_ms"))
                    // What was listed and what could not be, in words.
                    .col(schema::text_null("listed"))
                    .col(schema::text_null("failed"))
                    .primary_key(Index::create().col("provider").col("account").col("region"))
                    .take(),
            )
            .await?;
        // Of which scope a report is, and for which scheduled time. Null in reports of earlier versions, which speak of everything.
        for column in [schema::text_null("scope"), schema::big_integer_null("swept_for_unix_ms")] {
            manager.alter_table(Table::alter().table("sweeps").add_column(column).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["scope", "swept_for_unix_ms"] {
            manager.alter_table(Table::alter().table("sweeps").drop_column(column).take()).await?;
        }
        manager.drop_table(Table::drop().table("scopes").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
