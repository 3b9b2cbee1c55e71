//! Who speaks for a node: the key that is bound to it, how it is attested, its tokens with their ends, and join tokens that admit one node once.
//!
//! Nodes that joined before were let in by the join token alone, which is the fleet token now. They have no key: their token goes on
//! working until they join again, and that join binds one.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const ADDED: [&str; 7] = [
    "revoked_unix_ms",
    "disputed_because",
    "disputed_unix_ms",
    "attested_unix_ms",
    "attestation",
    "key_bound_unix_ms",
    "public_key",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column a statement.
        for column in [
            // Ed25519, hexadecimal digits; null is a node without a key.
            schema::text_null("public_key"),
            schema::big_integer_null("key_bound_unix_ms"),
            schema::text("attestation").default("fleet_token").take(),
            schema::big_integer_null("attested_unix_ms"),
            // Null is: nobody else claims to be this node.
            schema::big_integer_null("disputed_unix_ms"),
            schema::text_null("disputed_because"),
            schema::big_integer_null("revoked_unix_ms"),
        ] {
            manager.alter_table(Table::alter().table("nodes").add_column(column).take()).await?;
        }
        manager
            .create_table(
                Table::create()
                    .table("node_tokens")
                    .col(schema::text("token_sha256").primary_key())
                    .col(schema::text("node_id"))
                    .col(schema::big_integer("expires_unix_ms"))
                    .take(),
            )
            .await?;
        manager
            .create_index(Index::create().name("node_tokens_by_node").table("node_tokens").col("node_id").take())
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("join_tokens")
                    .col(schema::text("token_sha256").primary_key())
                    // Null is: for whichever node comes first.
                    .col(schema::text_null("node_id"))
                    .col(schema::big_integer("created_unix_ms"))
                    .col(schema::big_integer("expires_unix_ms"))
                    .col(schema::text_null("used_by"))
                    .col(schema::big_integer_null("used_unix_ms"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("used_challenges")
                    .col(schema::text("challenge_sha256").primary_key())
                    .col(schema::big_integer("expires_unix_ms"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["used_challenges", "join_tokens", "node_tokens"] {
            manager.drop_table(Table::drop().table(table).take()).await?;
        }
        for column in ADDED {
            manager.alter_table(Table::alter().table("nodes").drop_column(column).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
