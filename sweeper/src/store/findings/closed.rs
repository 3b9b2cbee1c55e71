//! Findings that have ended.

use super::{from_row, row};
use crate::{
    detectors::Class,
    findings::Finding,
    store::{Doing as _, Store, StoreError, to_unix_ms},
};
use jiff::Timestamp;
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _};

impl Store {
    /// The findings that were closed since then, the latest first.
    ///
    /// # Errors
    /// As [`Self::open_findings`].
    pub async fn findings_closed_since(&self, since: Timestamp) -> Result<Vec<Finding>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::ClosedUnixMs.gte(to_unix_ms(since)))
            .order_by_desc(row::Column::ClosedUnixMs)
            .order_by_asc(row::Column::Id)
            .all(self.connection())
            .await
            .doing("read the findings that were closed lately")?;
        // What a later version calls by a name of its own is left to that one.
        rows.into_iter().filter(|row| Class::from_word(&row.class).is_some()).map(from_row).collect()
    }
}
