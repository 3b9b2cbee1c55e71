//! Who started machines and who submitted jobs, in one table by the kind of what was started, and how far the trail was read for each.
//!
//! What is known of machines is copied: a trail forgets after 90 days. The tables `launches` and `trails` stay for sweepers of the version before, and are dropped by a later step.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                of_scopes("launched")
                    .col(schema::text("id"))
                    .col(schema::text_null("principal"))
                    .col(schema::text_null("via"))
                    .col(schema::big_integer_null("launched_unix_ms"))
                    .col(schema::text_null("event"))
                    .primary_key(Index::create().col("provider").col("account").col("region").col("kind").col("id"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                of_scopes("trails_read")
                    .col(schema::big_integer("from_unix_ms"))
                    .col(schema::big_integer("until_unix_ms"))
                    .primary_key(Index::create().col("provider").col("account").col("region").col("kind"))
                    .take(),
            )
            .await?;
        let database = manager.get_connection();
        for copy in [
            "INSERT INTO launched (provider, account, region, kind, id, principal, via, launched_unix_ms, event) \
             SELECT provider, account, region, 'instance', instance, principal, via, launched_unix_ms, event FROM launches",
            "INSERT INTO trails_read (provider, account, region, kind, from_unix_ms, until_unix_ms) \
             SELECT provider, account, region, 'instance', from_unix_ms, until_unix_ms FROM trails",
        ] {
            database.execute_unprepared(copy).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["trails_read", "launched"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

/// With what says of which scope a row is, and of what kind.
fn of_scopes(table: &'static str) -> TableCreateStatement {
    Table::create()
        .table(table)
        .col(schema::text("provider"))
        .col(schema::text("account"))
        .col(schema::text("region"))
        .col(schema::text("kind"))
        .take()
}
