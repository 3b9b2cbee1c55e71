//! What is done with a body of heartbeats once its sender is known: unpack → count → decode → version → node → clock → store.
//!
//! What it takes in memory is counted before it is decoded, and waits for its part of what all that are under way may take.
//! Nothing of a refused envelope is stored. The order matters: a sender learns the first fault only, and what costs least is checked first.

mod clock;

use crate::store::{Store, StoreError, Stored};
use heartbeat::{BootId, DecodeError, NodeId};
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory of all envelopes that are decoded and not yet stored, in bytes: five of the largest.
const MAX_DECODED_BYTES_AT_ONCE: usize = 128 << 20;
/// The unit in which it is counted, since a semaphore counts to 2 to the 32nd.
const MEMORY_UNIT_BYTES: usize = 1 << 10;
const _: () = assert!(heartbeat::envelope::MAX_DECODED_BYTES < MAX_DECODED_BYTES_AT_ONCE);

/// Where heartbeats go in.
#[derive(Debug)]
pub(crate) struct Ingest {
    store: Store,
    clock_skew: Duration,
    decoders: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// Why an envelope is not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejected {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// It speaks of another node than its sender.
    #[error("The token is that of {sender}, the heartbeats claim to be of {claimed}.")]
    ForeignNode { sender: NodeId, claimed: NodeId },
    /// Its clock is off.
    #[error(transparent)]
    ClockSkew(#[from] clock::Skewed),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sweeper is shutting down.
    #[error("The sweeper is shutting down.")]
    Closing,
    /// Decoding panicked.
    #[error("Decoding failed; the sweeper's log has the details.")]
    Failed,
}

impl Ingest {
    /// Into this store; `clock_skew` is how far a sender's clock may be off.
    pub(crate) fn new(store: Store, clock_skew: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = Arc::new(Semaphore::new(MAX_DECODED_BYTES_AT_ONCE / MEMORY_UNIT_BYTES));
        Self { store, clock_skew, decoders: Arc::new(Semaphore::new(cores)), memory }
    }

    /// Checks and stores one envelope of `sender`, and says of which boot it is.
    pub(crate) async fn receive(&self, sender: &NodeId, body: Vec<u8>) -> Result<(BootId, Stored), Rejected> {
        // As many are unpacked as there are slots, and no more wait for memory. What is under way keeps both, though its sender may be gone.
        let slot = self.decoder_slot().await?;
        let (unpacked, slot) = blocking(move || Ok((heartbeat::unpack(&body)?, slot))).await?;
        let memory = self.memory(unpacked.decoded_bytes()).await?;
        let decoded = blocking(move || {
            let envelope = unpacked.decode()?;
            drop(slot);
            Ok((envelope, memory))
        });
        let (envelope, _memory) = decoded.await?;
        if envelope.node_id != *sender {
            return Err(Rejected::ForeignNode { sender: sender.clone(), claimed: envelope.node_id.clone() });
        }
        let now = Timestamp::now();
        clock::check(now, self.clock_skew, &envelope)?;
        let stored = self.store.store_heartbeats(&envelope, now).await?;
        Ok((envelope.boot_id, stored))
    }

    /// A place among the bodies unpacked at once, as many as there are cores.
    async fn decoder_slot(&self) -> Result<OwnedSemaphorePermit, Rejected> {
        Arc::clone(&self.decoders).acquire_owned().await.map_err(|_| Rejected::Closing)
    }

    /// So much of the memory for decoded envelopes, until it is stored.
    async fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Rejected> {
        let units = u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX);
        Arc::clone(&self.memory).acquire_many_owned(units).await.map_err(|_| Rejected::Closing)
    }
}

/// Up to 4 MiB are unpacked and parsed: milliseconds that would hold up other requests.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DecodeError> + Send + 'static,
) -> Result<T, Rejected> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| Rejected::Failed)?;
    Ok(done?)
}
