//! What acknowledgements ask nodes: read once a second for all of them, and not with each heartbeat.

use crate::store::Store;
use heartbeat::NodeId;
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// How often it is read who is to be asked.
const READ_EVERY: Duration = Duration::from_secs(1);

/// The questions that are offered, by node.
#[derive(Debug, Default)]
pub struct Questions(RwLock<Arc<HashMap<String, String>>>);

impl Questions {
    /// What a node is asked, if anything.
    pub(super) fn to(&self, node: &NodeId) -> Option<String> {
        let open = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if open.is_empty() { None } else { open.get(&node.to_string()).cloned() }
    }

    /// Reads them until it is stopped. While the database does not answer nobody is asked: it would not store an answer.
    pub async fn run(&self, store: &Store, stop: CancellationToken) {
        loop {
            let open = store.open_questions().await.unwrap_or_else(|error| {
                tracing::debug!(error = %crate::chain(&error), "what nodes are asked is not known");
                HashMap::new()
            });
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(open);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(READ_EVERY) => {}
            }
        }
    }
}
