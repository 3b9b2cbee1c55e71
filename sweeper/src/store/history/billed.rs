//! What machines were through a time, and when nobody could list them: what costs are made of.

use super::rows::{span, version};
use crate::store::{Doing as _, Store, StoreError};
use model::ResourceKind;
use sea_orm::{ColumnTrait as _, Condition, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _};
use std::collections::HashMap;

/// Versions that are read at once: a record has 1 to 3 kB.
const PAGE: u64 = 1_000;

/// What a machine was for a while.
#[derive(Clone, Debug)]
pub struct MachineVersion {
    /// Its key.
    pub resource: String,
    /// When it was first seen so, in milliseconds since 1970-01-01 UTC.
    pub from_unix_ms: i64,
    /// When it was first seen otherwise, or no more.
    pub until_unix_ms: Option<i64>,
    /// The facts, as the inventory had them.
    pub record: String,
}

/// Provider, account and region of a listing.
pub type ListedPlace = (String, String, String);

impl Store {
    /// Hands over what each machine has been since a moment (milliseconds since 1970-01-01 UTC), machine by machine, each in its order. What was first listed
    /// later may have been started before.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn each_machine_version(
        &self,
        from_unix_ms: i64,
        mut take: impl FnMut(MachineVersion),
    ) -> Result<(), StoreError> {
        let mut last: Option<(String, i64)> = None;
        loop {
            let behind = last.as_ref().map(|(resource, from)| {
                let same = Condition::all()
                    .add(version::Column::Resource.eq(resource))
                    .add(version::Column::FromUnixMs.gt(*from));
                Condition::any().add(version::Column::Resource.gt(resource)).add(same)
            });
            let lasts = Condition::any()
                .add(version::Column::UntilUnixMs.is_null())
                .add(version::Column::UntilUnixMs.gt(from_unix_ms));
            let rows: Vec<(String, i64, Option<i64>, String)> = version::Entity::find()
                .select_only()
                .columns([
                    version::Column::Resource,
                    version::Column::FromUnixMs,
                    version::Column::UntilUnixMs,
                    version::Column::Record,
                ])
                .filter(version::Column::Kind.eq(ResourceKind::Instance.as_str()))
                .filter(lasts)
                .filter(behind.unwrap_or_else(Condition::all))
                .order_by_asc(version::Column::Resource)
                .order_by_asc(version::Column::FromUnixMs)
                .limit(PAGE)
                .into_tuple()
                .all(self.connection())
                .await
                .doing("read what machines were")?;
            last = rows.last().map(|(resource, from, ..)| (resource.clone(), *from));
            let is_last_page = (rows.len() as u64) < PAGE;
            for (resource, from_unix_ms, until_unix_ms, record) in rows {
                take(MachineVersion { resource, from_unix_ms, until_unix_ms, record });
            }
            if is_last_page {
                return Ok(());
            }
        }
    }

    /// For each place when its machines could not be listed, in milliseconds since 1970-01-01 UTC: from the last complete listing before a failed one to the
    /// next complete one, and from the last one of all on.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn machines_not_listed(&self) -> Result<HashMap<ListedPlace, Vec<(i64, i64)>>, StoreError> {
        let rows = span::Entity::find()
            .filter(span::Column::Kind.eq(ResourceKind::Instance.as_str()))
            .filter(span::Column::Failed.is_null())
            .order_by_asc(span::Column::FromUnixMs)
            .all(self.connection())
            .await
            .doing("read when machines were listed")?;
        let mut not_listed = HashMap::<ListedPlace, Vec<(i64, i64)>>::new();
        for row in rows {
            let gaps = not_listed.entry((row.provider, row.account, row.region)).or_default();
            if let Some(last) = gaps.last_mut() {
                last.1 = row.from_unix_ms;
            }
            gaps.push((row.until_unix_ms, i64::MAX));
        }
        Ok(not_listed)
    }
}
