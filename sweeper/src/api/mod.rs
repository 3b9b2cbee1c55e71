//! The HTTP interface: for agents, orchestrators and Prometheus.
//!
//! Every error is a problem document (RFC 9457) with a stable word, is counted by that word and logged once. What a stranger can make the
//! sweeper spend is bounded: without a valid token a hash and one indexed look-up, or a challenge (two hashes), or the check of one signature
//! over 16 KiB; with one, a body of 256 KiB. At most `MAX_BODIES` are held and `decoders` unpacked at once (4 MiB each), and what they
//! become takes at most `MAX_DECODED_BYTES_AT_ONCE`, counted before it is decoded. Plain HTTP: TLS ends in front of it.

mod auth;
mod body;
pub(crate) mod counters;
mod evidence;
mod health;
mod heartbeats;
mod nodes;
mod observe;
pub(crate) mod problem;
mod router;
mod rules;
mod scopes;
#[cfg(test)]
mod tests;

pub use auth::{JoinTokenError, establish_join_token, join_token};
pub use counters::install as install_metrics;
pub use router::router;

use crate::{
    config::IdentityConfig,
    identity::{challenge::ChallengeKey, evidence::Verifier},
    rules::{Served, Shelf},
    store::Store,
    sweep::Timetable,
};
use axum::serve::ListenerExt as _;
use heartbeat::api::RulesOffer;
use problem::{Reason, Refusal};
use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
};

/// Bodies held at once: 64 MiB at their limit of 256 KiB.
const MAX_BODIES: usize = 256;

/// Memory of all envelopes that are decoded and not yet stored, in bytes: five of the largest.
const MAX_DECODED_BYTES_AT_ONCE: usize = 128 << 20;
/// The unit in which it is counted, since a semaphore counts to 2 to the 32nd.
const MEMORY_UNIT_BYTES: usize = 1 << 10;
const _: () = assert!(heartbeat::envelope::MAX_DECODED_BYTES < MAX_DECODED_BYTES_AT_ONCE);

/// What every request handler needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    clock_skew: Duration,
    rules: Option<Arc<Shelf>>,
    timetable: Arc<Timetable>,
    identity: IdentityConfig,
    verifier: Verifier,
    challenges: OnceCell<ChallengeKey>,
    bodies: Arc<Semaphore>,
    decoders: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl AppState {
    /// The state over a migrated store; `clock_skew` is how far an agent's clock may be off, `rules` what agents are to
    /// follow, if not their built-in rules, `timetable` when what is swept, `identity` how nodes prove who they are, and `verifier` what
    /// evidence is verified with.
    #[must_use]
    pub fn new(
        store: Store,
        clock_skew: Duration,
        rules: Option<Arc<Shelf>>,
        timetable: Arc<Timetable>,
        identity: IdentityConfig,
        verifier: Verifier,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (bodies, decoders) = (Arc::new(Semaphore::new(MAX_BODIES)), Arc::new(Semaphore::new(cores)));
        let memory = Arc::new(Semaphore::new(MAX_DECODED_BYTES_AT_ONCE / MEMORY_UNIT_BYTES));
        let challenges = OnceCell::new();
        Self(Arc::new(Inner {
            store,
            clock_skew,
            rules,
            timetable,
            identity,
            verifier,
            challenges,
            bodies,
            decoders,
            memory,
        }))
    }

    /// The database.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn clock_skew(&self) -> Duration {
        self.0.clock_skew
    }

    fn identity(&self) -> &IdentityConfig {
        &self.0.identity
    }

    fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    /// What challenges are made with: the same at every sweeper over this database.
    async fn challenges(&self) -> Result<&ChallengeKey, Refusal> {
        self.0.challenges.get_or_try_init(|| auth::challenge_key(self.store())).await
    }

    fn timetable(&self) -> &Timetable {
        &self.0.timetable
    }

    /// The rules file, if one is served.
    fn rules(&self) -> Option<Arc<Served>> {
        self.0.rules.as_ref().map(|shelf| shelf.served())
    }

    /// What acknowledgements say about rules.
    pub(crate) fn rules_offer(&self) -> RulesOffer {
        self.rules().map_or(RulesOffer::BuiltIn, |served| served.offer())
    }

    /// A place among the bodies held at once.
    fn body_slot(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.0.bodies).try_acquire_owned().map_err(|_| {
            Refusal::new(Reason::Overloaded, format!("{MAX_BODIES} requests are being read; try again later."))
        })
    }

    /// A place among the bodies unpacked at once, as many as there are cores.
    pub(crate) async fn decoder_slot(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let slot = Arc::clone(&self.0.decoders).acquire_owned().await;
        slot.map_err(|_| closing())
    }

    /// So much of the memory for decoded envelopes, until it is stored.
    pub(crate) async fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let units = u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX);
        Arc::clone(&self.0.memory).acquire_many_owned(units).await.map_err(|_| closing())
    }
}

fn closing() -> Refusal {
    Refusal::new(Reason::Unavailable, "The sweeper is shutting down.")
}

/// Serves until `shutdown` completes, then finishes the requests under way.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    install_metrics();
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "answers may be delayed");
        }
    });
    let service = router(state).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(shutdown).await
}
