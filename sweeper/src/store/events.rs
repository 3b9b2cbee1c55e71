//! Events as rows: appended, never changed.

use super::{Doing as _, StoreError, to_unix_ms};
use crate::reconcile::Event;
use sea_orm::{ActiveValue::Set, ConnectionTrait, EntityTrait as _};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "events")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub finding_id: String,
        pub kind: String,
        pub at_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Appends one event.
pub(crate) async fn append(transaction: &impl ConnectionTrait, event: &Event) -> Result<(), StoreError> {
    let row = row::ActiveModel {
        id: Set(event.id.0.clone()),
        finding_id: Set(event.finding.0.clone()),
        kind: Set(event.kind.as_str().to_owned()),
        at_unix_ms: Set(to_unix_ms(event.at)),
    };
    row::Entity::insert(row).exec_without_returning(transaction).await.doing("write an event")?;
    Ok(())
}
