//! In which order work units are claimed.

use super::{Lease, free, row};
use crate::{
    store::{Doing as _, Store, StoreError, to_unix_ms},
    work_unit::WorkUnit,
};
use jiff::Timestamp;
use sea_orm::{
    EntityTrait as _, QueryFilter as _, QueryOrder as _,
    sea_query::{NullOrdering, Order},
};
use std::time::Duration;

impl Store {
    /// Claims of the work units that are due and free the one whose last sweep was begun longest ago, and one of which none ever was before
    /// all others; of several, the first by provider, account and region. `None` if there is none. `tick` says for what a work unit is due.
    ///
    /// It goes by when a sweep was begun, so that each claim puts its work unit behind all that wait: one whose sweeps always fail, or
    /// kill their replica, takes no more than its place in the queue.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn claim_longest_unswept(
        &self,
        tick: impl Fn(&WorkUnit) -> Timestamp,
        owner: &str,
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let free = row::Entity::find()
            .filter(free(self.clock()))
            .order_by_with_nulls(row::Column::StartedUnixMs, Order::Asc, NullOrdering::First)
            .order_by_asc(row::Column::Provider)
            .order_by_asc(row::Column::Account)
            .order_by_asc(row::Column::Region)
            .all(self.connection())
            .await
            .doing("look for work units that are free")?;
        for row in free {
            let Some(unit) = WorkUnit::from_words(&row.provider, &row.account, &row.region) else { continue };
            let tick = tick(&unit);
            if row.swept_for_unix_ms.is_some_and(|swept_for| swept_for >= to_unix_ms(tick)) {
                continue;
            }
            // `None` if another replica was faster, whose row is locked or no longer free: then the one behind it.
            if let Some(lease) = self.claim_due(&unit, tick, owner, length).await? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }
}
