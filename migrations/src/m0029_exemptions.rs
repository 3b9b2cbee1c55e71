//! What people want left alone: for good, or until then.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let exemptions = Table::create()
            .table("exemptions")
            .col(schema::text("id").primary_key())
            // The key's text form.
            .col(schema::text("resource"))
            // The finding that it was said of, and its class; null where it was said of the resource itself.
            .col(schema::text_null("finding_id"))
            .col(schema::text_null("class"))
            .col(schema::text("approver"))
            .col(schema::text("way"))
            .col(schema::big_integer("at_unix_ms"))
            // Null is: for good.
            .col(schema::big_integer_null("until_unix_ms"))
            .col(schema::text_null("because"))
            // By whom it was lifted, and when; the row stays.
            .col(schema::big_integer_null("lifted_unix_ms"))
            .col(schema::text_null("lifted_by"))
            .take();
        manager.create_table(exemptions).await?;
        let by_resource = Index::create().name("exemptions_by_resource").table("exemptions").col("resource").take();
        manager.create_index(by_resource).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("exemptions").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
