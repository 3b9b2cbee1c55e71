//! Which step of the schema a program must know to use the database: what a program of before is told by, when it starts on a schema that has steps which it does not know.
//!
//! A sweeper that does not know this step starts on no newer schema at all.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // One row, 1.
        let table = Table::create()
            .table("needed_step")
            .col(schema::integer("id").primary_key())
            .col(schema::text("step"))
            .take();
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("needed_step").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
