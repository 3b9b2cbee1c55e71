//! Catalogues: what the zones of a region offer an account, and which lists of prices were read as a whole.
//!
//! A sweeper of the version before reads and writes neither.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Zones are named differently in each account.
const PLACE: [&str; 3] = ["provider", "account", "region"];
/// What prices of one list have in common: all of their key but the type.
const LIST: [&str; 8] = [
    "source",
    "provider",
    "region",
    "operating_system",
    "tenancy",
    "license_model",
    "preinstalled_software",
    "capacity_status",
];

fn keyed<const N: usize>(name: &'static str, columns: [&'static str; N]) -> TableCreateStatement {
    let (mut table, mut key) = (Table::create(), Index::create());
    table.table(name);
    for column in columns {
        table.col(schema::text(column));
        key.col(column);
    }
    table.primary_key(&mut key);
    table
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut catalogues = keyed("catalogues", PLACE);
        // JSON, compressed.
        catalogues.col(schema::big_integer("read_unix_ms")).col(schema::blob("catalogue"));
        manager.create_table(catalogues).await?;
        let mut lists = keyed("price_lists", LIST);
        lists.col(schema::big_integer("read_unix_ms"));
        manager.create_table(lists).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("price_lists").take()).await?;
        manager.drop_table(Table::drop().table("catalogues").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
