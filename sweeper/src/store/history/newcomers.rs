//! What was there for the first time after a moment.

use super::{ROWS, Version, rows::version, version_of};
use crate::store::{Doing as _, Store, StoreError, to_unix_ms};
use jiff::Timestamp;
use model::ResourceKey;
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _};
use std::collections::HashSet;

impl Store {
    /// What each resource of the same kind and place as this one is now that was never seen before `since`, as it has been since its last change; the oldest such change first.
    ///
    /// # Errors
    /// If the database does not answer or holds a record that is none.
    pub async fn newcomers(&self, of: &ResourceKey, since: Timestamp) -> Result<Vec<Version>, StoreError> {
        const DOING: &str = "read what was there for the first time";
        let place = || {
            version::Entity::find()
                .filter(version::Column::Kind.eq(of.kind.as_str()))
                .filter(version::Column::Provider.eq(of.provider.as_str()))
                .filter(version::Column::Account.eq(&of.account))
                .filter(version::Column::Region.eq(&of.location))
        };
        let since = to_unix_ms(since);
        // Of what is there now, by an index: versions of before are many where machines come and go.
        let seen = place().filter(version::Column::UntilUnixMs.is_null());
        let seen = seen.filter(version::Column::FromUnixMs.gte(since)).order_by_asc(version::Column::FromUnixMs);
        let seen = seen.all(self.connection()).await.doing(DOING)?;
        let names: Vec<&str> =
            seen.iter().map(|row| row.resource.as_str()).collect::<HashSet<_>>().into_iter().collect();
        let mut known = HashSet::new();
        for names in names.chunks(ROWS) {
            let before: Vec<String> = place()
                .select_only()
                .column(version::Column::Resource)
                .filter(version::Column::FromUnixMs.lt(since))
                .filter(version::Column::Resource.is_in(names.iter().copied()))
                .into_tuple()
                .all(self.connection())
                .await
                .doing(DOING)?;
            known.extend(before);
        }
        seen.into_iter().filter(|row| !known.contains(&row.resource)).map(version_of).collect()
    }
}
