//! Since when a resource has been as it is.

use super::{ROWS, rows::version};
use crate::{
    inventory::Kind,
    store::{Doing as _, Store, StoreError, from_unix_ms},
};
use jiff::Timestamp;
use model::ResourceKey;
use sea_orm::{
    ColumnTrait as _, EntityTrait as _, PaginatorTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
};
use std::collections::HashMap;

impl Store {
    /// Since when each of these resources has been so without interruption, as far as its kept versions tell; `is_so` says it of one version's facts.
    /// One that is not so in the version that lasts, or that was never listed before, is left out.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn lasting_since(
        &self,
        kind: Kind,
        resources: &[ResourceKey],
        is_so: impl Fn(&str) -> bool,
    ) -> Result<HashMap<ResourceKey, Timestamp>, StoreError> {
        let mut lasting = HashMap::new();
        for keys in resources.chunks(ROWS) {
            let by_text: HashMap<String, &ResourceKey> = keys.iter().map(|key| (key.to_string(), key)).collect();
            let rows = version::Entity::find()
                .filter(version::Column::Kind.eq(kind.as_str()))
                .filter(version::Column::Resource.is_in(by_text.keys().map(String::as_str)))
                .order_by_asc(version::Column::Resource)
                .order_by_desc(version::Column::FromUnixMs)
                .all(self.connection())
                .await
                .doing("read since when resources have been so")?;
            for versions in rows.chunk_by(|one, other| one.resource == other.resource) {
                let mut since = None;
                for version in versions {
                    let carries_on = match since {
                        None => version.until_unix_ms.is_none(),
                        Some(from) => version.until_unix_ms == Some(from),
                    };
                    if !carries_on || !is_so(&version.record) {
                        break;
                    }
                    since = Some(version.from_unix_ms);
                }
                let key = versions.first().and_then(|version| by_text.get(&version.resource));
                if let (Some(key), Some(since)) = (key, since) {
                    lasting.insert((*key).clone(), from_unix_ms(since)?);
                }
            }
        }
        Ok(lasting)
    }

    /// How many resources of a kind an account has, as it was last listed.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn count_of_account(&self, kind: Kind, account: &str) -> Result<u64, StoreError> {
        version::Entity::find()
            .filter(version::Column::Kind.eq(kind.as_str()))
            .filter(version::Column::Account.eq(account))
            .filter(version::Column::UntilUnixMs.is_null())
            .count(self.connection())
            .await
            .doing("count the resources of an account")
    }

    /// Since when each of these resources has been in no list, as far as any list ever had it. One that is listed now, or that never was, is left out.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn missing_since(
        &self,
        kind: Kind,
        resources: &[ResourceKey],
    ) -> Result<HashMap<ResourceKey, Timestamp>, StoreError> {
        let mut missing = HashMap::new();
        for keys in resources.chunks(ROWS) {
            let by_text: HashMap<String, &ResourceKey> = keys.iter().map(|key| (key.to_string(), key)).collect();
            let rows: Vec<(String, Option<i64>)> = version::Entity::find()
                .select_only()
                .columns([version::Column::Resource, version::Column::UntilUnixMs])
                .filter(version::Column::Kind.eq(kind.as_str()))
                .filter(version::Column::Resource.is_in(by_text.keys().map(String::as_str)))
                .order_by_asc(version::Column::Resource)
                .order_by_desc(version::Column::FromUnixMs)
                .into_tuple()
                .all(self.connection())
                .await
                .doing("read since when resources have been missing")?;
            for versions in rows.chunk_by(|one, other| one.0 == other.0) {
                let Some((resource, Some(until))) = versions.first() else { continue };
                if let Some(key) = by_text.get(resource) {
                    missing.insert((*key).clone(), from_unix_ms(*until)?);
                }
            }
        }
        Ok(missing)
    }
}
