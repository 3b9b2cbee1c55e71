//! Empties the spool into the sweeper: joins and renews its token, sends the newest first, believes acknowledgements, waits when it must.
//!
//! Delivery is at least once; the sweeper stores each (node, boot, sequence) once, and what it acknowledges is on its disk: those
//! very heartbeats are forgotten. One request is under way at a time and carries at most [`MAX_HEARTBEATS`] heartbeats or
//! about 1 MiB before compression. After any failure the next try carries the newest heartbeat alone, and each success
//! doubles the number: a sweeper that comes back learns the present of all its nodes from small requests before their past
//! comes in large ones, and a day's outage at 30 s (2,880 heartbeats) is made good in 19 requests. Nothing here keeps the
//! next heartbeat from being measured.

pub mod answer;
pub mod backoff;
pub mod client;
mod join;
pub mod meter;
pub mod queue;
mod rules;

use crate::{config::JoinToken, identity, rules::RulesStore, spool::Batch, state::StateDir};
use answer::Answer;
use backoff::Backoff;
use client::Client;
use heartbeat::{
    BootId, NodeId,
    envelope::{MAX_BODY_BYTES, MAX_HEARTBEATS},
    wire,
};
use join::{Joiner, NotJoined};
use queue::Queue;
use secrecy::SecretString;
use std::{sync::Arc, time::Duration};

/// Heartbeats pack at 4:1 and better, so this stays under the limit of the body; if not, the batch is halved.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// From so many refusals for good in a row on, something else than a heartbeat is wrong, and the rest of the spool is not put at stake at
/// full speed.
const REFUSED_IN_A_ROW: u32 = 3;
/// An interval that ends this far in this host's own future was measured under another clock.
const MOST_AHEAD_MS: i64 = 60_000;

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing waits.
    Idle,
    /// Something was done; there may be more.
    Progress,
    /// It did not work; wait so long.
    Wait(Duration),
}

/// What the exporter needs to know about its node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub node_id: NodeId,
    /// Its present boot.
    pub boot_id: BootId,
    /// The kernel's node name.
    pub hostname: String,
    /// How it may join.
    pub join_token: Option<JoinToken>,
    /// Whom to ask for evidence of which machine this is.
    pub metadata: identity::Settings,
}

/// The sender.
pub struct Exporter {
    client: Client,
    node: Node,
    state: Arc<StateDir>,
    queue: Arc<Queue>,
    meter: Arc<meter::Meter>,
    rules: rules::Follower,
    joiner: Joiner,
    token: Option<SecretString>,
    /// The token was refused, has expired, or is not bound to a key yet: join before it is tried again.
    must_join: bool,
    backoff: Backoff,
    batch_limit: usize,
    /// Heartbeats that were set aside since one was stored.
    refused_in_a_row: u32,
    /// The last two troubles that were logged, for a refused token and a refused join take turns; none while all is well.
    troubles: Vec<String>,
}

impl Exporter {
    /// Starts with the token that an earlier agent was given, if there is one.
    ///
    /// With a token and no sequence known, this is a new boot: its sequences begin at 1.
    #[must_use]
    pub fn new(
        client: Client,
        node: Node,
        state: Arc<StateDir>,
        queue: Arc<Queue>,
        meter: Arc<meter::Meter>,
        rules_store: Arc<RulesStore>,
        backoff: Backoff,
    ) -> Self {
        let token = state.token(&node.node_id);
        if token.is_some() {
            note_minimum(queue.spool().raise_minimum(0));
        }
        let joiner = Joiner::new(&state, &node.node_id, token.as_ref());
        let must_join = token.is_some() && joiner.is_due(node.join_token.is_some());
        let token = token.map(|token| token.secret);
        let rules = rules::Follower::new(rules_store);
        let (refused_in_a_row, batch_limit, troubles) = (0, 1, Vec::new());
        Self {
            client,
            node,
            state,
            queue,
            meter,
            rules,
            joiner,
            token,
            must_join,
            backoff,
            batch_limit,
            refused_in_a_row,
            troubles,
        }
    }

    /// Does one thing: joins, or sends one envelope.
    pub async fn step(&mut self) -> Step {
        let step = match self.token.clone() {
            Some(token) if !self.must_join => {
                let token = self.renewed(token).await;
                self.rules.follow(&self.client, &token).await;
                self.send(&token).await
            }
            _ => {
                let step = self.join().await;
                // If it did not come to a new token, the old one may be good again: a sweeper gets its database back.
                self.must_join = false;
                step
            }
        };
        self.meter.sample();
        step
    }

    async fn join(&mut self) -> Step {
        match self.joiner.join(&self.client, &self.node, &self.state).await {
            Ok(joined) => {
                note_minimum(self.queue.spool().raise_minimum(joined.last_sequence));
                self.token = Some(joined.token);
                tracing::info!(node = %self.node.node_id, last_sequence = joined.last_sequence, "joined the sweeper");
                // Only a stored heartbeat ends the back-off: a token that is refused at once must not be asked for at full speed.
                Step::Progress
            }
            // The token that it has goes on working: the sweeper is older than this agent.
            Err(NotJoined::NoChallenges) => Step::Progress,
            Err(refused) => {
                let (why, after) = refused.reason();
                self.later(why, after)
            }
        }
    }

    /// The token to send with: a new one where the present one is about to expire. If none is to be had, the present one is good for a
    /// while, and nothing waits.
    async fn renewed(&mut self, token: SecretString) -> SecretString {
        if !self.joiner.is_renewal_due() {
            return token;
        }
        match self.joiner.join(&self.client, &self.node, &self.state).await {
            Ok(joined) => {
                tracing::debug!(node = %self.node.node_id, "renewed the node token");
                self.token = Some(joined.token.clone());
                joined.token
            }
            Err(refused) => {
                let (why, _) = refused.reason();
                tracing::warn!(why, "the node token is not renewed; it is tried again in a minute");
                token
            }
        }
    }

    async fn send(&mut self, token: &SecretString) -> Step {
        let Some(batch) = self.queue.spool().batch(self.batch_limit, MAX_BATCH_BYTES) else { return Step::Idle };
        let body = match heartbeat::encode(&envelope(&self.node.node_id, &batch)) {
            Ok(body) => body,
            Err(error) => return self.later(format!("an envelope cannot be packed: {error}"), None),
        };
        if body.len() > MAX_BODY_BYTES {
            return self.too_large(&batch, "over the limit of the contract");
        }
        match self.client.send(body, token).await.map(|received| answer::judge(&received)) {
            Ok(Answer::Stored(ack)) => self.stored(&batch, &ack),
            Ok(Answer::JoinAgain(why)) => {
                self.must_join = true;
                self.joiner.lose_token();
                self.later(format!("it does not take this node's token, which will join again: {why}"), None)
            }
            Ok(Answer::TooLarge(why)) => self.too_large(&batch, &why),
            Ok(Answer::TooLargeOnTheWay(why)) if batch.heartbeats.len() == 1 => self.later(why, None),
            Ok(Answer::TooLargeOnTheWay(why)) => self.too_large(&batch, &why),
            Ok(Answer::Refused(why)) => self.refused(&batch, &why),
            Ok(Answer::ClockSkew(why)) => self.clock_skew(&batch, why),
            Ok(Answer::Later { why, after }) => self.later(why, after),
            Err(why) => self.later(why, None),
        }
    }

    fn stored(&mut self, batch: &Batch, ack: &heartbeat::api::Ack) -> Step {
        let sent = batch.heartbeats.len();
        let accounted = usize::try_from(u64::from(ack.stored) + u64::from(ack.duplicates)).ok();
        if ack.boot_id != batch.boot || accounted != Some(sent) {
            let why = format!("its acknowledgement speaks of {accounted:?} heartbeats where {sent} were sent");
            return self.later(why, None);
        }
        let sequences = batch.heartbeats.iter().map(|heartbeat| heartbeat.sequence).collect::<Vec<_>>();
        self.queue.spool().acknowledge(batch.boot, &sequences, ack.contiguous_sequence);
        self.rules.hear(ack);
        if let Some(question) = &ack.question {
            self.queue.ask(question);
        }
        self.refused_in_a_row = 0;
        self.batch_limit = self.batch_limit.saturating_mul(2).min(MAX_HEARTBEATS);
        tracing::debug!(
            sent,
            stored = ack.stored,
            duplicates = ack.duplicates,
            sequence = ack.contiguous_sequence,
            "the sweeper has stored heartbeats"
        );
        self.well();
        Step::Progress
    }

    fn too_large(&mut self, batch: &Batch, why: &str) -> Step {
        if batch.heartbeats.len() == 1 {
            return self.refused(batch, why);
        }
        self.batch_limit = (batch.heartbeats.len() / 2).max(1);
        Step::Progress
    }

    /// Finds the one at fault by sending them one by one; a single one is set aside.
    fn refused(&mut self, batch: &Batch, why: &str) -> Step {
        if let [heartbeat] = batch.heartbeats.as_slice() {
            let sequence = heartbeat.sequence;
            tracing::error!(boot = %batch.boot, sequence, why, "the sweeper will never accept this heartbeat; it is set aside");
            self.queue.spool().reject(batch.boot, sequence);
            self.refused_in_a_row = self.refused_in_a_row.saturating_add(1);
            if self.refused_in_a_row >= REFUSED_IN_A_ROW {
                return self.later(format!("it refuses one heartbeat after the other: {why}"), None);
            }
        }
        self.batch_limit = 1;
        Step::Progress
    }

    /// What was measured under a clock that ran ahead, and has since been set back, is never believed: it is set aside, or it
    /// would block what follows until that time has come. If the present clock is off, waiting helps: clocks get set.
    fn clock_skew(&mut self, batch: &Batch, why: String) -> Step {
        let believable_ms = jiff::Timestamp::now().as_millisecond().saturating_add(MOST_AHEAD_MS);
        let end_ms = |one: &wire::Heartbeat| one.interval.as_ref().map_or(0, |interval| interval.end_unix_ms);
        let ahead = batch.heartbeats.iter().filter(|one| end_ms(one) > believable_ms).map(|one| one.sequence);
        let ahead = ahead.collect::<Vec<_>>();
        if ahead.is_empty() {
            return self.later(why, None);
        }
        tracing::error!(boot = %batch.boot, count = ahead.len(), why,
            "heartbeats that were measured while this host's clock ran ahead are set aside");
        for sequence in ahead {
            self.queue.spool().reject(batch.boot, sequence);
        }
        Step::Progress
    }

    /// Waits, and says why if that is news.
    fn later(&mut self, why: String, asked: Option<Duration>) -> Step {
        let wait = self.backoff.next(asked, &mut rand::rng());
        self.batch_limit = 1;
        if self.troubles.contains(&why) {
            tracing::debug!(why, wait_ms = wait.as_millis(), "the sweeper still does not take heartbeats");
        } else {
            let is_known = self.queue.spool().last_sequence().is_some();
            let fate = if is_known { "they wait" } else { "none is kept until this node has joined" };
            tracing::warn!(why, waiting = self.queue.stats().waiting, "the sweeper does not take heartbeats; {fate}");
            if self.troubles.len() == 2 {
                self.troubles.remove(0);
            }
            self.troubles.push(why);
        }
        Step::Wait(wait)
    }

    fn well(&mut self) {
        self.backoff.reset();
        if !std::mem::take(&mut self.troubles).is_empty() {
            tracing::info!(waiting = self.queue.stats().waiting, "the sweeper takes heartbeats again");
        }
    }
}

fn note_minimum(outcome: std::io::Result<()>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the last sequence is not kept on disk");
    }
}

fn envelope(node_id: &NodeId, batch: &Batch) -> wire::Envelope {
    wire::Envelope {
        version: heartbeat::envelope::VERSION,
        node_id: node_id.to_string(),
        boot_id: batch.boot.to_string(),
        oldest_retained_sequence: batch.oldest_retained_sequence,
        sent_unix_ms: jiff::Timestamp::now().as_millisecond(),
        heartbeats: batch.heartbeats.clone(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
