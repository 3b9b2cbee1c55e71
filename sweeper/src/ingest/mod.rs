//! What is done with a body of heartbeats: whose token → unpack → count → decode → version → node → clock → pack → group commit.
//!
//! What it takes in memory is counted before it is decoded, and waits for its part of what all that are under way may take.
//! Nothing of a refused envelope is stored. The order matters: a sender learns the first fault only, and what costs least is checked first.

mod clock;
mod group;

use crate::{
    store::{Delivered, Delivery, Store, StoreError, Stored, TokenHash},
    verdict::StatePolicy,
};
pub(crate) use group::GROUP_SIZE;
use group::{Group, NotStored};
use heartbeat::{BootId, DecodeError, NodeId, Unpacked};
use jiff::Timestamp;
use moka::sync::Cache;
use std::{sync::Arc, time::Duration};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

/// So many tokens are remembered as known, at some 250 bytes each, and for so long: one look-up in the database for sixty heartbeats. What is
/// remembered only lets a body be read; whether the token still is its node's is looked at again where the heartbeats are stored.
const MAX_REMEMBERED: u64 = 100_000;
const REMEMBERED_FOR: Duration = Duration::from_secs(1_800);

/// Memory of all envelopes that are decoded and not yet stored, in bytes: five of the largest.
const MAX_DECODED_BYTES_AT_ONCE: usize = 128 << 20;
/// What is small and becomes more than this is decoded by a thread that has nothing else to do.
const MAX_DECODED_HERE: usize = 128 << 10;
/// The unit in which it is counted, since a semaphore counts to 2 to the 32nd.
const MEMORY_UNIT_BYTES: usize = 1 << 10;
const _: () = assert!(heartbeat::envelope::MAX_DECODED_BYTES < MAX_DECODED_BYTES_AT_ONCE);

/// Where heartbeats go in.
#[derive(Debug)]
pub struct Ingest {
    store: Store,
    clock_skew: Duration,
    decoders: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    senders: Cache<String, NodeId>,
    state_policy: Arc<StatePolicy>,
    group: OnceCell<Group>,
}

/// Whose token it is, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Who it is.
    pub(crate) node_id: NodeId,
    token: TokenHash,
}

/// Why an envelope is not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejected {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// It speaks of another node than its sender.
    #[error("The token is that of {sender}, the heartbeats claim to be of {claimed}.")]
    ForeignNode { sender: String, claimed: String },
    /// Its token is void since a moment.
    #[error("This node token has expired, or is void since the node joined anew or was revoked; join again.")]
    TokenVoid,
    /// Its clock is off.
    #[error(transparent)]
    ClockSkew(#[from] clock::Skewed),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database is away.
    #[error("The database does not answer; send them again later.")]
    Unavailable,
    /// The sweeper is shutting down.
    #[error("The sweeper is shutting down.")]
    Closing,
    /// Decoding panicked.
    #[error("Decoding failed; the sweeper's log has the details.")]
    Failed,
}

impl Ingest {
    /// Into this store; `clock_skew` is how far a sender's clock may be off, and `state_policy` what the states of nodes are made by.
    #[must_use]
    pub fn new(store: Store, clock_skew: Duration, state_policy: StatePolicy) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = Arc::new(Semaphore::new(MAX_DECODED_BYTES_AT_ONCE / MEMORY_UNIT_BYTES));
        let senders = Cache::builder().max_capacity(MAX_REMEMBERED).time_to_live(REMEMBERED_FOR).build();
        let decoders = Arc::new(Semaphore::new(cores));
        Self {
            store,
            clock_skew,
            decoders,
            memory,
            senders,
            state_policy: Arc::new(state_policy),
            group: OnceCell::new(),
        }
    }

    /// The node that a token was known to be of within the last half hour.
    pub(crate) fn remembered(&self, token: &TokenHash) -> Option<Sender> {
        let node_id = self.senders.get(token.as_str())?;
        Some(Sender { node_id, token: token.clone() })
    }

    /// The node that holds a token; none if nobody does, which is not remembered: somebody may join with it in a moment.
    pub(crate) async fn look_up(&self, token: TokenHash) -> Result<Option<Sender>, StoreError> {
        let Some(node) = self.store.node_by_token(&token).await? else { return Ok(None) };
        self.senders.insert(token.as_str().to_owned(), node.node_id.clone());
        Ok(Some(Sender { node_id: node.node_id, token }))
    }

    /// Whether a sender's token is its node's at this moment; one that is not is remembered no more.
    pub(crate) async fn still_speaks(&self, sender: &Sender) -> Result<bool, StoreError> {
        let node = self.store.node_by_token(&sender.token).await?;
        let speaks = node.is_some_and(|node| node.node_id == sender.node_id);
        if !speaks {
            self.senders.invalidate(sender.token.as_str());
        }
        Ok(speaks)
    }

    /// Checks and stores one envelope of `sender`, and says of which boot it is. `held` is let go once the body is decoded.
    pub(crate) async fn receive(
        &self,
        sender: &Sender,
        body: Vec<u8>,
        held: impl Send + 'static,
    ) -> Result<(BootId, Stored), Rejected> {
        // As many are unpacked as there are slots, and no more wait for memory. What is under way keeps both, though its sender may be gone.
        let slot = self.decoder_slot().await?;
        let is_small = heartbeat::envelope::is_small(&body);
        let (Sender { node_id, token }, skew, memory) = (sender.clone(), self.clock_skew, Arc::clone(&self.memory));
        let pack = move |unpacked: Unpacked, memory: OwnedSemaphorePermit| {
            let envelope = unpacked.decode()?;
            if envelope.node_id != node_id {
                let (sender, claimed) = (node_id.to_string(), envelope.node_id.to_string());
                return Err(Rejected::ForeignNode { sender, claimed });
            }
            clock::check(Timestamp::now(), skew, &envelope)?;
            Ok((envelope.boot_id, Delivery::new(&envelope, Some(token))?, memory))
        };
        // Nearly always there is memory for it: then all is done in one go; and it is small: then it is done here, for another thread takes longer to wake up.
        let unpack = move || {
            let unpacked = heartbeat::unpack(&body)?;
            let held = (slot, held);
            if is_small && unpacked.decoded_bytes() > MAX_DECODED_HERE {
                return Ok(Err((unpacked, pack, held)));
            }
            match memory.try_acquire_many_owned(units(unpacked.decoded_bytes())) {
                Ok(memory) => Ok(Ok(pack(unpacked, memory)?)),
                Err(_) => Ok(Err((unpacked, pack, held))),
            }
        };
        let unpacked = if is_small { unpack()? } else { blocking(unpack).await? };
        let packed = match unpacked {
            Ok(packed) => packed,
            Err((unpacked, pack, held)) => {
                let memory = self.memory(unpacked.decoded_bytes()).await?;
                blocking(move || {
                    let _held = held;
                    pack(unpacked, memory)
                })
                .await?
            }
        };
        let (boot_id, delivery, _memory) = packed;
        let start = async || Group::over(self.store.clone(), Arc::clone(&self.state_policy));
        let group = self.group.get_or_init(start).await;
        match group.store(delivery).await? {
            Delivered::Stored(stored) => Ok((boot_id, stored)),
            Delivered::TokenVoid => Err(Rejected::TokenVoid),
        }
    }

    /// A place among the bodies unpacked at once, as many as there are cores.
    async fn decoder_slot(&self) -> Result<OwnedSemaphorePermit, Rejected> {
        Arc::clone(&self.decoders).acquire_owned().await.map_err(|_| Rejected::Closing)
    }

    /// So much of the memory for decoded envelopes, until it is stored.
    async fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Rejected> {
        Arc::clone(&self.memory).acquire_many_owned(units(bytes)).await.map_err(|_| Rejected::Closing)
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// Up to 4 MiB are unpacked, parsed and packed: milliseconds that would hold up other requests.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Rejected> + Send + 'static,
) -> Result<T, Rejected> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Rejected::Failed)?
}

impl From<NotStored> for Rejected {
    fn from(not_stored: NotStored) -> Self {
        match not_stored {
            NotStored::Store(error) => Self::Store(error),
            NotStored::NotTried => Self::Unavailable,
            NotStored::Closing => Self::Closing,
        }
    }
}
