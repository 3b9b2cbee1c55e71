//! Rollups are made as they fall due, by each replica some of them.

use crate::store::{RolledUp, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Counts rollups that were made, and made anew.
pub const MADE: &str = "rollups_made_total";
/// Counts those that could not be made any more, because their heartbeats arrived when others of the same time may have been deleted.
pub const TOO_LATE: &str = "rollups_too_late_total";

/// How often it is asked what is due: the rollups of a fleet are spread over minutes.
const EVERY: Duration = Duration::from_secs(10);
/// Between two transactions: whoever waits for SQLite's write lock tries again within so long.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes rollups until it is told to stop. `heartbeat_retention`: what is older may be deleted at any time.
pub async fn run(store: Store, heartbeat_retention: Duration, stop: CancellationToken) {
    loop {
        let pause = match once(&store, heartbeat_retention).await {
            Ok(RolledUp { made, too_late, are_more_due }) => {
                metrics::counter!(MADE).increment(made);
                metrics::counter!(TOO_LATE).increment(too_late);
                // Few at a time would take as many statements as many: what falls due meanwhile is made together.
                if are_more_due { PAUSE } else { EVERY }
            }
            Err(error) => {
                tracing::error!(error = %crate::chain(&error), "rollups cannot be made; they are tried again");
                EVERY
            }
        };
        tokio::select! {
            // A rollup is made in one transaction, so that it may be left at any moment.
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn once(store: &Store, heartbeat_retention: Duration) -> Result<RolledUp, StoreError> {
    let now = store.now().await?;
    let retention = SignedDuration::try_from(heartbeat_retention).unwrap_or(SignedDuration::MAX);
    store.roll_up(now, now.checked_sub(retention).unwrap_or(Timestamp::MIN)).await
}
