//! The HTTP interface: for agents, orchestrators and Prometheus.
//!
//! Every error is a problem document (RFC 9457) with a stable word, is counted by that word and logged once. What a stranger can make the
//! sweeper spend is bounded: without a valid token a hash and one indexed look-up, or a challenge (two hashes), or the check of one signature
//! over 16 KiB; with one (or, for heartbeats, one that was valid within the last half hour), a body of 256 KiB. At most `MAX_BODIES` are held and as many unpacked at once as there are cores (4 MiB each), and what they
//! become takes at most 128 MiB, counted before it is decoded (`ingest`). What comes in Slack's name is 256 KiB, read in 16 places of its own and hashed once. Unknown tokens are looked up so often and no more (`strangers`), and connections
//! have their limits (`server`). Plain HTTP: TLS ends in front of it.

mod auth;
mod body;
mod costs;
mod counters;
mod evidence;
mod health;
mod heartbeats;
mod interactions;
mod nodes;
mod observe;
mod problem;
mod questions;
mod recommendations;
mod remembered;
mod router;
mod rules;
mod scopes;
mod server;
mod strangers;
#[cfg(test)]
mod tests;
mod tls;
mod unsubscribe;

pub use auth::{FLEET, OPERATOR, SharedToken, TokenError, approver_token, establish, join_token, question};
pub use counters::install as install_metrics;
pub use questions::Questions;
pub use router::router;
pub use server::serve;
pub use tls::{Tls, TlsError};

use crate::{
    attribution,
    config::{Config, IdentityConfig},
    identity::{challenge::ChallengeKey, evidence::Verifier},
    ingest::Ingest,
    interactions::Interactions,
    rules::{RulesStore, Served},
    store::Store,
    sweep::Timetable,
};
use heartbeat::api::RulesOffer;
use problem::{Reason, Refusal};
use remembered::Tokens;
use std::sync::Arc;
use strangers::Limits;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Bodies held at once: 64 MiB at their limit of 256 KiB.
const MAX_BODIES: usize = 256;

/// What of the configuration request handlers need.
#[derive(Clone, Debug)]
pub struct Settings {
    identity: IdentityConfig,
    costs: attribution::Settings,
    recommendations: crate::recommendations::Settings,
}

impl Settings {
    /// Those of this configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            identity: config.identity.clone(),
            costs: attribution::Settings::of(config),
            recommendations: crate::recommendations::Settings::of(config),
        }
    }
}

/// What every request handler needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    ingest: Ingest,
    rules: Option<Arc<RulesStore>>,
    timetable: Arc<Timetable>,
    settings: Settings,
    verifier: Verifier,
    challenges: OnceCell<ChallengeKey>,
    bodies: Arc<Semaphore>,
    /// Costs are added up, and recommendations made, for one at a time: either takes a core for seconds.
    one_at_a_time: Semaphore,
    strangers: Limits,
    remembered: Tokens,
    questions: Arc<Questions>,
    interactions: Option<Arc<Interactions>>,
}

impl AppState {
    /// The state over a migrated store; `ingest` is where heartbeats go in, `rules` what agents are to follow, if not their built-in rules, `timetable` when what is swept, `settings` what else of the configuration is needed, `verifier` what
    /// evidence is verified with, and `interactions` where answers in Slack go, if there are any.
    #[must_use]
    pub fn new(
        store: Store,
        ingest: Ingest,
        rules: Option<Arc<RulesStore>>,
        timetable: Arc<Timetable>,
        settings: Settings,
        verifier: Verifier,
        interactions: Option<Arc<Interactions>>,
    ) -> Self {
        let (challenges, bodies) = (OnceCell::new(), Arc::new(Semaphore::new(MAX_BODIES)));
        let (strangers, remembered, questions) = (Limits::default(), Tokens::default(), Arc::default());
        Self(Arc::new(Inner {
            store,
            ingest,
            rules,
            timetable,
            settings,
            verifier,
            challenges,
            bodies,
            one_at_a_time: Semaphore::new(1),
            strangers,
            remembered,
            questions,
            interactions,
        }))
    }

    /// The database.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// What nodes are asked; whoever serves keeps it up to date.
    #[must_use]
    pub fn questions(&self) -> Arc<Questions> {
        Arc::clone(&self.0.questions)
    }

    fn interactions(&self) -> Option<&Interactions> {
        self.0.interactions.as_deref()
    }

    fn ingest(&self) -> &Ingest {
        &self.0.ingest
    }

    fn strangers(&self) -> &Limits {
        &self.0.strangers
    }

    fn remembered(&self) -> &Tokens {
        &self.0.remembered
    }

    fn identity(&self) -> &IdentityConfig {
        &self.0.settings.identity
    }

    fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    /// What challenges are made with: the same at every sweeper over this database.
    async fn challenges(&self) -> Result<&ChallengeKey, Refusal> {
        self.0.challenges.get_or_try_init(|| auth::challenge_key(self.store())).await
    }

    fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The turn of whoever wants costs or recommendations; it ends with the value.
    fn turn(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        self.0.one_at_a_time.try_acquire().map_err(|_| {
            let why = "Costs or recommendations are being worked out for somebody else; try again later.";
            Refusal::new(Reason::Overloaded, why)
        })
    }

    fn timetable(&self) -> &Timetable {
        &self.0.timetable
    }

    /// The rules file, if one is served.
    fn rules(&self) -> Option<Arc<Served>> {
        self.0.rules.as_ref().map(|rules_store| rules_store.served())
    }

    /// What acknowledgements say about rules.
    fn rules_offer(&self) -> RulesOffer {
        self.rules().map_or(RulesOffer::BuiltIn, |served| served.offer())
    }

    /// A place among the bodies held at once.
    fn body_slot(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.0.bodies).try_acquire_owned().map_err(|_| {
            Refusal::new(Reason::Overloaded, format!("{MAX_BODIES} requests are being read; try again later."))
        })
    }
}
