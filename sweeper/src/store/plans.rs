//! Plans as rows: appended, never changed.

use super::{Doing as _, StoreError, corrupt, to_unix_ms};
use jiff::Timestamp;
use model::plan::Plan;
use sea_orm::{ActiveValue::Set, ConnectionTrait, EntityTrait as _};

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
