//! Who may decide about plans, what each said of which, and the audit log.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            Table::create()
                .table("approvers")
                .col(schema::text("name").primary_key())
                .col(schema::big_integer("enrolled_unix_ms"))
                // Null is: may decide.
                .col(schema::big_integer_null("removed_unix_ms"))
                .take(),
            Table::create()
                .table("approver_accounts")
                // `TEAM/USER` of Slack.
                .col(schema::text("account").primary_key())
                .col(schema::text("approver"))
                .col(schema::big_integer("linked_unix_ms"))
                .take(),
            Table::create()
                .table("approver_tokens")
                .col(schema::text("token_sha256").primary_key())
                .col(schema::text("approver"))
                .col(schema::big_integer("made_unix_ms"))
                .col(schema::big_integer("expires_unix_ms"))
                .col(schema::big_integer_null("used_unix_ms"))
                .take(),
            Table::create()
                .table("approvals")
                .col(schema::text("plan_hash"))
                .col(schema::text("approver"))
                // Since when they were enrolled as they said so: who was removed and enrolled again is asked anew.
                .col(schema::big_integer("enrolled_unix_ms"))
                // `approve` or `deny`.
                .col(schema::text("answer"))
                .col(schema::text("way"))
                .col(schema::big_integer("at_unix_ms"))
                // The rule of the policy that let it be; null of a denial, which needs none.
                .col(schema::text_null("rule"))
                .col(schema::text_null("because"))
                .primary_key(Index::create().col("plan_hash").col("approver").col("enrolled_unix_ms").col("answer"))
                .take(),
            Table::create()
                .table("audit")
                .col(schema::big_integer("sequence").primary_key())
                .col(schema::text("entry"))
                .col(schema::text("hash"))
                .take(),
            Table::create()
                .table("audit_head")
                .col(schema::integer("id").primary_key())
                .col(schema::big_integer("sequence"))
                .col(schema::text("hash"))
                .take(),
        ] {
            manager.create_table(table).await?;
        }
        let first = "INSERT INTO audit_head (id, sequence, hash) VALUES (1, 0, '')";
        manager.get_connection().execute_unprepared(first).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["audit_head", "audit", "approvals", "approver_tokens", "approver_accounts", "approvers"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
