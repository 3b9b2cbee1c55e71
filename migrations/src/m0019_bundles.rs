//! Bundles and updates: what is told together, and which message another one changes.
//!
//! A sweeper of the version before reads and writes no column of these. What it writes has no `audience` and is told by itself; what it finds with a `bundle`
//! it tells one by one. Updates stand under a name of a channel that it does not claim (`slack_update`), or it would post them as messages of their own. What
//! is `withdrawn` it knows as discarded, which it tries again only by name.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            // What is due with the same word here may be told by one message.
            schema::text_null("audience"),
            // What was told, or is being told, by one message.
            schema::text_null("bundle"),
            // The event whose message on the channel this one changes.
            schema::text_null("updates"),
            // When nobody needed it any more.
            schema::big_integer_null("withdrawn_unix_ms"),
        ] {
            manager.alter_table(Table::alter().table("outbox").add_column(column).take()).await?;
        }
        for (name, column) in INDEXES {
            manager.create_index(Index::create().name(name).table("outbox").col(column).take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in INDEXES {
            manager.drop_index(Index::drop().name(name).table("outbox").to_owned()).await?;
        }
        for column in ["withdrawn_unix_ms", "updates", "bundle", "audience"] {
            manager.alter_table(Table::alter().table("outbox").drop_column(column).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

const INDEXES: [(&str, &str); 2] = [("outbox_bundles", "bundle"), ("outbox_updates", "updates")];
