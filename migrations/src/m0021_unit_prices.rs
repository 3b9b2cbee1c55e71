//! Prices per unit (a GiB for a month, an hour of an address) as they were read, each from when on, beside those of machines.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// What makes two amounts cost the same, and which price list said so.
const KEY: [&str; 4] = ["source", "provider", "region", "usage_type"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (mut table, mut key) = (Table::create(), Index::create());
        table.table("unit_prices");
        for column in KEY {
            table.col(schema::text(column));
            key.col(column);
        }
        table
            // The first time that it was read so, and the last.
            .col(schema::big_integer("effective_unix_ms"))
            .col(schema::big_integer("read_unix_ms"))
            // Of a dollar: price lists have ten decimals.
            .col(schema::big_integer("ten_billionths_usd"))
            .primary_key(key.col("effective_unix_ms"));
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("unit_prices").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
