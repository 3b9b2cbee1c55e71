//! Holding a work unit for as long as it is being swept.

use super::SweepError;
use crate::{
    store::{Lease, Store},
    work_unit::WorkUnit,
};
use std::{future::Future, time::Duration};

/// Names one replica or command for as long as it runs: host, process and eight random digits, since a process id comes
/// again.
#[must_use]
pub fn owner() -> String {
    let uname = rustix::system::uname();
    let host = heartbeat::text::visible(&uname.nodename().to_string_lossy()).into_owned();
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{host}/{}/{}", std::process::id(), &random[..8])
}

/// Works on a work unit while its lease is renewed each third of its length. The work is dropped where it stands once the
/// lease has run out: what it read is too old by then, and somebody else may be sweeping.
pub(super) async fn held<T>(
    store: &Store,
    lease: &Lease,
    length: Duration,
    work: impl Future<Output = Result<T, SweepError>>,
) -> Result<T, SweepError> {
    tokio::select! {
        done = work => done,
        () = renewed(store, lease, length) => Err(SweepError::LeaseLost { unit: lease.unit.clone() }),
    }
}

/// Renews until the lease has run out.
async fn renewed(store: &Store, lease: &Lease, length: Duration) {
    loop {
        tokio::time::sleep(length / 3).await;
        match store.renew(lease, length).await {
            Ok(true) => {}
            Ok(false) => return,
            // It lasts for two more thirds; if the database stays away, the result is refused in the end.
            Err(error) => log_failed(&lease.unit, &error),
        }
    }
}

fn log_failed(unit: &WorkUnit, error: &crate::store::StoreError) {
    tracing::warn!(scope = %unit, error = %crate::chain(error), "a lease is not renewed; it is tried again");
}
