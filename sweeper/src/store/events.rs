//! Events as rows: appended, never changed.

use super::{Doing as _, StoreError, from_unix_ms, to_unix_ms};
use crate::reconcile::{Event, EventKind};
use jiff::Timestamp;
use sea_orm::{ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _};
use std::collections::HashMap;

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

/// How a finding ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// As its event says.
    pub kind: EventKind,
    /// What refuted it.
    pub because: String,
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

/// How those of these findings ended that have, with the reasons for it.
pub(super) async fn ends(
    connection: &impl ConnectionTrait,
    findings: &[String],
    reasons: &HashMap<String, String>,
) -> Result<HashMap<String, End>, StoreError> {
    const KINDS: [EventKind; 3] = [EventKind::Interrupted, EventKind::Resolved, EventKind::Gone];
    let mut ends = HashMap::new();
    // SQLite takes 32,766 parameters.
    for some in findings.chunks(1_000) {
        let rows = row::Entity::find()
            .filter(row::Column::FindingId.is_in(some.iter().map(String::as_str)))
            .filter(row::Column::Kind.is_in(KINDS.map(EventKind::as_str)))
            .all(connection)
            .await
            .doing("read how findings ended")?;
        for row in rows {
            let Some(kind) = KINDS.into_iter().find(|kind| kind.as_str() == row.kind) else { continue };
            let because = reasons.get(&row.finding_id).cloned().unwrap_or_default();
            ends.insert(row.finding_id, End { at: from_unix_ms(row.at_unix_ms)?, kind, because });
        }
    }
    Ok(ends)
}
