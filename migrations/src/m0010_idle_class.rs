//! An idle machine is one class of waste, whether or not an inventory covers it: `idle_instance` becomes `idle_node`.
//!
//! A sweeper of the version before reads that word, and writes the old one, which the new version reads.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        for statement in [
            // Both at once were never written by one sweep; should they be there, the one that the provider vouches for stays.
            "UPDATE findings SET open_key = NULL, closed_unix_ms = confirmed_unix_ms, closed_because = 'an inventory covers it from now on' \
             WHERE open_key IN (SELECT 'idle_node|' || resource FROM findings WHERE class = 'idle_instance' AND open_key IS NOT NULL)",
            "UPDATE findings SET open_key = 'idle_node|' || resource WHERE class = 'idle_instance' AND open_key IS NOT NULL",
            "UPDATE findings SET class = 'idle_node' WHERE class = 'idle_instance'",
        ] {
            connection.execute_unprepared(statement).await?;
        }
        Ok(())
    }

    /// Which were which is not kept: what an inventory covers, the older version finds out by its next sweep.
    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}
