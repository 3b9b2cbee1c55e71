//! Events as rows: appended, never changed.

use super::{Doing as _, StoreError, to_unix_ms};
use crate::{
    findings::FindingId,
    reconcile::{Event, EventKind},
};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, PaginatorTrait as _, QueryFilter as _,
};

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

/// Whether something of this kind has happened to a finding since then.
pub(crate) async fn happened(
    transaction: &impl ConnectionTrait,
    finding: &FindingId,
    kind: EventKind,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let events = row::Entity::find()
        .filter(row::Column::FindingId.eq(&finding.0))
        .filter(row::Column::Kind.eq(kind.as_str()))
        .filter(row::Column::AtUnixMs.gte(to_unix_ms(since)));
    Ok(events.count(transaction).await.doing("look for an event")? > 0)
}
