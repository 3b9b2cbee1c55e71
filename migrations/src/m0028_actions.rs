//! What is carried out, and how far each action is; the kill switch; since when the database has been the same without interruption.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            Table::create()
                .table("actions")
                .col(schema::text("plan_hash"))
                // `do` or `undo`.
                .col(schema::text("direction"))
                // Of doing there is one; starting again may find no capacity and be tried anew.
                .col(schema::integer("attempt"))
                .col(schema::text("finding_id"))
                .col(schema::text("resource"))
                .col(schema::text("account"))
                .col(schema::text("class"))
                // The people, with commas between their names.
                .col(schema::text("asked_by"))
                .col(schema::text("state"))
                // One more with each process that takes it over.
                .col(schema::big_integer("epoch"))
                .col(schema::text("holder"))
                .col(schema::big_integer("held_until_unix_ms"))
                .col(schema::big_integer("claimed_unix_ms"))
                .col(schema::big_integer("changed_unix_ms"))
                .col(schema::big_integer_null("called_unix_ms"))
                .col(schema::text_null("request_id"))
                // What became of it, or what it waits for, in words.
                .col(schema::text_null("outcome"))
                // What was known when it was decided, as JSON.
                .col(schema::text_null("rests_on"))
                .col(schema::big_integer_null("relapsed_unix_ms"))
                .col(schema::text_null("relapsed_because"))
                // When somebody looked at the relapse.
                .col(schema::big_integer_null("reviewed_unix_ms"))
                .primary_key(Index::create().col("plan_hash").col("direction").col("attempt"))
                .take(),
            Table::create()
                .table("kill_switch")
                .col(schema::integer("id").primary_key())
                .col(schema::boolean("is_on"))
                .col(schema::text("who"))
                .col(schema::text_null("because"))
                .col(schema::big_integer("at_unix_ms"))
                .take(),
            Table::create()
                .table("continuity")
                .col(schema::integer("id").primary_key())
                // When a sweeper last served.
                .col(schema::big_integer("seen_unix_ms"))
                // What people approved before is void.
                .col(schema::big_integer("void_before_unix_ms"))
                .take(),
        ] {
            manager.create_table(table).await?;
        }
        manager.create_index(Index::create().name("actions_by_state").table("actions").col("state").take()).await?;
        let first = "INSERT INTO kill_switch (id, is_on, who, at_unix_ms) VALUES (1, FALSE, 'the first start', 0)";
        manager.get_connection().execute_unprepared(first).await?;
        let first = "INSERT INTO continuity (id, seen_unix_ms, void_before_unix_ms) VALUES (1, 0, 0)";
        manager.get_connection().execute_unprepared(first).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["continuity", "kill_switch", "actions"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
