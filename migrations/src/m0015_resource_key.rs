//! The key of a finding's resource, in columns: a finding may be about anything that a provider bills for.
//!
//! `resource` stays the key's text form, by which sweepers of the version before know the resource; rows that they write have no columns.

use sea_orm_migration::{prelude::*, schema};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

const COLUMNS: [&str; 5] = ["provider", "account", "location", "kind", "resource_id"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column a statement.
        for column in COLUMNS {
            manager.alter_table(Table::alter().table("findings").add_column(schema::text_null(column)).take()).await?;
        }
        let connection = manager.get_connection();
        let findings = Query::select().columns(["id", "resource"]).from("findings").take();
        for row in connection.query_all(&findings).await? {
            let (id, resource): (String, String) = (row.try_get("", "id")?, row.try_get("", "resource")?);
            // A row that no version wrote stays as it is, and is reported when it is read.
            let Some(words) = columns(&resource) else { continue };
            let mut update = Query::update();
            update.table("findings").and_where(Expr::col("id").eq(id));
            for (column, word) in COLUMNS.into_iter().zip(words) {
                update.value(column, word);
            }
            connection.execute(&update).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            manager.alter_table(Table::alter().table("findings").drop_column(column).take()).await?;
        }
        Ok(())
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

/// The columns of a machine's key: until now each finding was about one. A project of Google Cloud may hold a colon, so it is split from the right.
fn columns(resource: &str) -> Option<[&str; 5]> {
    let (provider, rest) = resource.split_once(':')?;
    if provider == "host" {
        return Some(["onprem", "", "", "node", rest]);
    }
    let mut parts = rest.rsplitn(3, ':');
    let (id, location, account) = (parts.next()?, parts.next()?, parts.next()?);
    Some([provider, account, location, "instance", id])
}
