//! Plans as rows: appended, never changed.

use super::{
    Doing as _, Store, StoreError, approvals, corrupt,
    events::{self, End},
    findings, from_unix_ms, to_unix_ms,
};
use jiff::Timestamp;
use model::plan::{ContentHash, Plan};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _,
};
use std::collections::{HashMap, HashSet};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "plans")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub content_hash: String,
        pub finding_id: String,
        pub made_unix_ms: i64,
        pub valid_until_unix_ms: i64,
        pub content: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A finding of which a plan was made that nobody approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unapproved {
    /// When its first plan was made.
    pub planned_at: Timestamp,
    /// How it ended, if it has.
    pub end: Option<End>,
}

/// Appends a plan as it was made, with the prices of that moment beside it.
pub(crate) async fn append(
    transaction: &impl ConnectionTrait,
    plan: &Plan,
    made_at: Timestamp,
) -> Result<(), StoreError> {
    let content = serde_json::to_string(plan).map_err(|error| corrupt("a plan", error))?;
    let row = row::ActiveModel {
        content_hash: Set(plan.content_hash().to_string()),
        finding_id: Set(plan.content().finding.clone()),
        made_unix_ms: Set(to_unix_ms(made_at)),
        valid_until_unix_ms: Set(to_unix_ms(plan.valid_until())),
        content: Set(content),
    };
    row::Entity::insert(row).exec_without_returning(transaction).await.doing("keep a plan")?;
    Ok(())
}

/// The plan of this hash; none if there was never one, or a later version made it.
pub(crate) async fn by_hash(connection: &impl ConnectionTrait, hash: &ContentHash) -> Result<Option<Plan>, StoreError> {
    let row = row::Entity::find_by_id(hash.as_str()).one(connection).await.doing("look up a plan")?;
    row.map(|row| plan_of(&row)).transpose()
}

fn plan_of(row: &row::Model) -> Result<Plan, StoreError> {
    serde_json::from_str(&row.content).map_err(|error| corrupt(format!("the plan {}", row.content_hash), error))
}

impl Store {
    /// The plans whose hash begins like this, at most three: a person types as much as makes it unique.
    ///
    /// # Errors
    /// If the database does not answer or holds a plan of another version.
    pub async fn plans_by_prefix(&self, prefix: &str) -> Result<Vec<Plan>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::ContentHash.starts_with(prefix))
            .order_by_asc(row::Column::ContentHash)
            .limit(3)
            .all(self.connection())
            .await
            .doing("look up a plan")?;
        rows.iter().map(plan_of).collect()
    }

    /// The findings of whose plans nobody has approved any, each with its first plan and how it ended.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn unapproved(&self) -> Result<Vec<Unapproved>, StoreError> {
        let connection = self.connection();
        let made: Vec<(String, String, i64)> = row::Entity::find()
            .select_only()
            .columns([row::Column::FindingId, row::Column::ContentHash, row::Column::MadeUnixMs])
            .order_by_asc(row::Column::MadeUnixMs)
            .into_tuple()
            .all(connection)
            .await
            .doing("read which plans were made")?;
        let approved = approvals::approved(connection).await?;
        let is_approved = |(finding, hash, _): &(String, String, i64)| approved.contains(hash).then(|| finding.clone());
        let approved: HashSet<String> = made.iter().filter_map(is_approved).collect();
        let mut first: HashMap<String, i64> = HashMap::new();
        for (finding, _, made_unix_ms) in made {
            if !approved.contains(&finding) {
                first.entry(finding).or_insert(made_unix_ms);
            }
        }
        let findings: Vec<String> = first.keys().cloned().collect();
        let reasons = findings::closed_because(connection, &findings).await?;
        let mut ends = events::ends(connection, &findings, &reasons).await?;
        let of = |(finding, made): (String, i64)| {
            Ok(Unapproved { planned_at: from_unix_ms(made)?, end: ends.remove(&finding) })
        };
        first.into_iter().map(of).collect()
    }
}
