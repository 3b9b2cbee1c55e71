//! What machines cost day by day, added up beforehand, and which days are to be added up anew.
//!
//! Triggers note the node and the day of each hour's rollup that is written or deleted: a sweeper of the version before makes hours anew as well and would not note it, and so
//! does retention. Their mark is another one each time, so that whoever adds a day up sees whether it was noted again meanwhile.

use sea_orm_migration::{prelude::*, schema, sea_orm::DbBackend};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// A view's columns, one for each dimension that it tells.
const DIMENSIONS: [&str; 5] = ["pipeline", "run", "task", "tool", "workload"];
/// What happens to a rollup, and by which name SQLite knows its row.
const CHANGES: [(&str, &str); 3] = [("insert", "new"), ("update", "new"), ("delete", "old")];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut days = Table::create();
        // Days since 1970-01-01 UTC; which part of all machines, and which view: `runs` or `workloads`.
        days.table("cost_days")
            .col(schema::big_integer("day"))
            .col(schema::big_integer("part"))
            .col(schema::text("view"))
            // Another one each time that the row is written.
            .col(schema::big_integer("mark"))
            // Packed with zstd: whose sums these are, and what they come to.
            .col(schema::blob("machines"))
            .col(schema::blob("amounts"));
        // Likewise: of each line the text, and each text once. NULL where the view does not tell it.
        for dimension in DIMENSIONS {
            days.col(schema::blob_null(dimension));
        }
        days.primary_key(Index::create().col("day").col("part").col("view"));
        manager.create_table(days.take()).await?;
        let mut changed = Table::create();
        changed
            .table("cost_days_changed")
            .col(schema::big_integer("day"))
            .col(schema::text("node_id"))
            .col(schema::big_integer("mark"))
            .primary_key(Index::create().col("day").col("node_id"));
        manager.create_table(changed.take()).await?;
        for statement in triggers(manager.get_database_backend()) {
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let is_postgres = manager.get_database_backend() == DbBackend::Postgres;
        for (change, _) in CHANGES {
            let of = if is_postgres { " ON rollups" } else { "" };
            let drop = format!("DROP TRIGGER rollups_{change}_changes_costs{of}");
            manager.get_connection().execute_unprepared(&drop).await?;
        }
        if is_postgres {
            manager.get_connection().execute_unprepared("DROP FUNCTION note_changed_costs()").await?;
        }
        manager.drop_table(Table::drop().table("cost_days_changed").take()).await?;
        manager.drop_table(Table::drop().table("cost_days").take()).await
    }

    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }
}

/// One for each kind of change. No statement changes whose a rollup is or of when.
fn triggers(backend: DbBackend) -> Vec<String> {
    let again = "ON CONFLICT (day, node_id) DO UPDATE SET mark = excluded.mark";
    if backend != DbBackend::Postgres {
        // `WHERE true` tells SQLite that ON is no part of a join.
        let trigger = |(change, row): (&str, &str)| {
            format!(
                "CREATE TRIGGER rollups_{change}_changes_costs AFTER {change} ON rollups WHEN {row}.tier = 3600 BEGIN \
                 INSERT INTO cost_days_changed (day, node_id, mark) SELECT {row}.start_unix_ms / 86400000, {row}.node_id, random() WHERE true {again}; END"
            )
        };
        return CHANGES.map(trigger).into();
    }
    // Once for each statement, which may change thousands of rows, and in one order, so that nobody waits for somebody who waits for them.
    let function = format!(
        "CREATE FUNCTION note_changed_costs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO cost_days_changed (day, node_id, mark) SELECT day, node_id, txid_current() \
         FROM (SELECT DISTINCT start_unix_ms / 86400000 AS day, node_id FROM changed WHERE tier = 3600) AS days ORDER BY day, node_id {again}; \
         RETURN NULL; END $$"
    );
    let trigger = |(change, rows): (&str, &str)| {
        format!(
            "CREATE TRIGGER rollups_{change}_changes_costs AFTER {change} ON rollups REFERENCING {rows} TABLE AS changed \
             FOR EACH STATEMENT EXECUTE FUNCTION note_changed_costs()"
        )
    };
    std::iter::once(function).chain(CHANGES.map(trigger)).collect()
}
