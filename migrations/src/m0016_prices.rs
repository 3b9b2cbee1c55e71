//! Prices as they were read, each from when on: what cannot be read today is told as of the last day.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// What makes two machines cost the same, and which price list said so.
const KEY: [&str; 9] = [
    "source",
    "provider",
    "region",
    "instance_type",
    "operating_system",
    "tenancy",
    "license_model",
    "preinstalled_software",
    "capacity_status",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (mut table, mut key) = (Table::create(), Index::create());
        table.table("prices");
        for column in KEY {
            table.col(schema::text(column));
            key.col(column);
        }
        table
            // The first time that it was read so, and the last.
            .col(schema::big_integer("effective_unix_ms"))
            .col(schema::big_integer("read_unix_ms"))
            .col(schema::big_integer("micro_usd_per_hour"))
            .primary_key(key.col("effective_unix_ms"));
        manager.create_table(table).await?;
        let as_of = schema::big_integer_null("cost_as_of_unix_ms");
        manager.alter_table(Table::alter().table("findings").add_column(as_of).take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("findings").drop_column("cost_as_of_unix_ms").take()).await?;
        manager.drop_table(Table::drop().table("prices").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
