//! Follows the sweeper's offer of rules: fetches a file that is news, at most once a minute if that fails.
//!
//! Heartbeats come first: a fetch takes the place of no request but is made before the next one, and its failure changes
//! nothing about sending.

use super::client::Client;
use crate::rules::RulesStore;
use heartbeat::api::{Ack, RulesOffer};
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Time between two attempts of which the first failed.
const PAUSE: Duration = Duration::from_secs(60);

/// What there is to fetch.
#[derive(Debug)]
pub(super) struct Follower {
    rules_store: Arc<RulesStore>,
    offer: Option<RulesOffer>,
    not_before: Option<Instant>,
}

impl Follower {
    pub(super) fn new(rules_store: Arc<RulesStore>) -> Self {
        Self { rules_store, offer: None, not_before: None }
    }

    /// Hears what an acknowledgement offers.
    pub(super) fn hear(&mut self, ack: &Ack) {
        self.offer = ack.rules.clone().filter(|offer| self.rules_store.hear(Some(offer)));
    }

    /// Fetches the offered file, if there is one that is news.
    pub(super) async fn follow(&mut self, client: &Client, token: &SecretString) {
        let Some(RulesOffer::File { sha256: offered, .. }) = &self.offer else { return };
        if self.not_before.is_some_and(|moment| Instant::now() < moment) {
            return;
        }
        match client.rules(token, &self.rules_store.sha256()).await {
            // Changed in between, or on its way: what was not offered is not taken.
            Ok(received) if received.status == 200 && hex::encode(Sha256::digest(&received.body)) != *offered => {
                self.later("it sent another file than it offers");
            }
            Ok(received) if received.status == 200 => {
                (self.offer, self.not_before) = (None, None);
                self.rules_store.take(&received.body);
            }
            // It went back to what is in force, or to nothing, since it made the offer: the next one says which.
            Ok(received) if matches!(received.status, 304 | 404) => (self.offer, self.not_before) = (None, None),
            Ok(received) => self.later(&super::answer::explain(&received)),
            Err(why) => self.later(&why),
        }
    }

    fn later(&mut self, why: &str) {
        tracing::warn!(why, "the sweeper's rules cannot be fetched; trying again in a minute");
        self.not_before = Some(Instant::now() + PAUSE);
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
