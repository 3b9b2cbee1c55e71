//! Spot prices, each from the moment on that EC2 tells, beside those of the lists.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// What makes two Spot instances cost the same: zones are named differently in each account.
const KEY: [&str; 5] = ["provider", "account", "zone", "instance_type", "product"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (mut table, mut key) = (Table::create(), Index::create());
        table.table("spot_prices");
        for column in KEY {
            table.col(schema::text(column));
            key.col(column);
        }
        table
            .col(schema::big_integer("effective_unix_ms"))
            // The last time that it was read to be the price in effect.
            .col(schema::big_integer("read_unix_ms"))
            .col(schema::big_integer("micro_usd_per_hour"))
            .primary_key(key.col("effective_unix_ms"));
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("spot_prices").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
