//! Delivers what lies in the outbox.
//!
//! A message is written in the transaction of the event that it tells, one per event and channel for good, so it is sent at least once and
//! never again once a server has taken it: a sweeper that dies between the server's answer and noting it sends it once more, under the same Message-ID
//! or metadata. What is due at the same time for one owner is told by one message, a *bundle*; its rows share their fate, and a bundle that a server takes in no form is told one by one.
//! That a finding has ended is shown in the Slack message that told its opening. A message that answers another one waits for it, and names it by what its server gave it.
//! One message is claimed at a time, for as long as its one attempt may take and
//! `MARGIN` more, so that no claim runs out while its holder still sends; a sweeper that dies with a claim leaves the
//! message to others after that. The channels do not wait for each other. Retries are drawn with full jitter and honour `Retry-After`; a message is
//! discarded when the server refuses it for good (what is meant for one of Slack's channels that does not take it goes to the channel for all first) or after `outbox.discard_after` (then, too), never because of a number of attempts: a
//! server may be down for a weekend. What is due, and who holds a claim, is by the database's clock: sweepers need not agree on the time.

mod channels;
mod routing;

pub use crate::store::SLACK;
pub use channels::{ChannelError, Channels};
pub(crate) use channels::{mailer, slack};
pub(crate) use routing::destination;

use crate::{
    config::OutboxConfig,
    store::{Claimed, ClaimedUpdate, Store, StoreError},
};
use jiff::{SignedDuration, Timestamp};
use notifier::{SendError, retry, slack::Updated};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time for the database around an attempt, added to the attempt's own limit.
const MARGIN: Duration = Duration::from_secs(20);
/// How often the outbox is looked at when nothing says when the next message is due.
const LOOK: Duration = Duration::from_secs(5);
/// A server may ask for so much time and no more: one that asks for a year is broken, or means harm.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// Name of the email channel in the outbox.
pub const EMAIL: &str = "email";

/// Whether what was sent by this channel can be changed afterwards.
#[must_use]
pub fn can_update(channel: &str) -> bool {
    channel == SLACK
}

/// What one round of delivery did. Each message of a bundle counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Taken by a server.
    pub sent: usize,
    /// To be tried again.
    pub retried: usize,
    /// Discarded.
    pub failed: usize,
}

/// Tries every message and update that is due now, once.
///
/// # Errors
/// If the database does not answer. What a server refuses is noted in the outbox.
pub async fn deliver_due(store: &Store, channels: &Channels, config: &OutboxConfig) -> Result<Delivered, StoreError> {
    let each = channels.names().into_iter().map(|channel| {
        let delivered = Delivered::default();
        Round { store, channels, config, channel, delivered }.run()
    });
    let mut delivered = Delivered::default();
    for one in futures::future::join_all(each).await {
        let one = one?;
        delivered.sent += one.sent;
        delivered.retried += one.retried;
        delivered.failed += one.failed;
    }
    Ok(delivered)
}

/// One round of one channel.
struct Round<'a> {
    store: &'a Store,
    channels: &'a Channels,
    config: &'a OutboxConfig,
    channel: &'static str,
    delivered: Delivered,
}

impl Round<'_> {
    async fn run(mut self) -> Result<Delivered, StoreError> {
        loop {
            let now = self.store.now().await?;
            let until = now.checked_add(self.channels.claim(self.channel)).unwrap_or(Timestamp::MAX);
            if let Some(claimed) = self.store.claim_message(self.channel, now, until).await? {
                self.send(&claimed).await?;
                continue;
            }
            if !can_update(self.channel) {
                return Ok(self.delivered);
            }
            match self.store.claim_update(self.channel, now, until).await? {
                Some(update) => self.update(&update).await?,
                None => return Ok(self.delivered),
            }
        }
    }

    async fn send(&mut self, claimed: &Claimed) -> Result<(), StoreError> {
        let result = self.channels.send(claimed).await;
        let (channel, key, told) = (self.channel, claimed.key(), claimed.messages.len());
        match result {
            Ok(receipt) => {
                self.store.message_sent(claimed, &receipt, self.store.now().await?).await?;
                self.delivered.sent += told;
                self.count("sent", claimed);
                tracing::info!(
                    key,
                    told,
                    channel,
                    attempts = claimed.attempts() + 1,
                    server = receipt.said,
                    "message sent"
                );
                Ok(())
            }
            // Two hundred findings are not discarded because the server takes no message about all of them.
            Err(SendError::Unfit { why }) if told > 1 => {
                self.store.take_bundle_apart(claimed, &why).await?;
                self.delivered.retried += told;
                self.count("retried", claimed);
                tracing::warn!(key, told, channel, why, "bundle not taken; each of it is sent by itself");
                Ok(())
            }
            // Nobody would miss what was never said: it is said where somebody reads.
            Err(SendError::NoChannel { why } | SendError::Unclear { why }) if claimed.may_be_diverted() => {
                self.divert(claimed, &why).await
            }
            // It was away for all the time that there is.
            Err(SendError::Retry { why, .. })
                if claimed.may_be_diverted() && self.store.now().await? >= discard_at(claimed, self.config) =>
            {
                self.divert(claimed, &why).await
            }
            Err(error) => self.failed(claimed, error).await,
        }
    }

    /// Has what a channel does not take told in the one for all.
    async fn divert(&mut self, claimed: &Claimed, why: &str) -> Result<(), StoreError> {
        let (key, told, channel) = (claimed.key(), claimed.messages.len(), self.channel);
        self.store.divert(claimed, why).await?;
        self.delivered.retried += told;
        self.count("diverted", claimed);
        tracing::warn!(key, told, channel, why, "message not taken there; it goes to the channel for all");
        Ok(())
    }

    async fn update(&mut self, update: &ClaimedUpdate) -> Result<(), StoreError> {
        let (channel, claimed, key) = (self.channel, &update.claimed, &update.key);
        match self.channels.update(update).await {
            Ok(Updated::Shown(receipt)) => {
                self.store.message_sent(claimed, &receipt, self.store.now().await?).await?;
                self.delivered.sent += claimed.messages.len();
                self.count("updated", claimed);
                tracing::info!(key, channel, ended = claimed.messages.len(), server = receipt.said, "message updated");
                Ok(())
            }
            Ok(Updated::Gone { why }) => {
                self.store.message_withdrawn(claimed, &why, self.store.now().await?).await?;
                self.count("withdrawn", claimed);
                tracing::info!(key, channel, why, "message not updated: it is gone");
                Ok(())
            }
            Err(error) => self.failed(claimed, error).await,
        }
    }

    /// Has all of a claim tried again later, or discards it.
    async fn failed(&mut self, claimed: &Claimed, error: SendError) -> Result<(), StoreError> {
        let Self { store, config, channel, .. } = *self;
        let (key, told, now) = (claimed.key(), claimed.messages.len(), store.now().await?);
        let attempts = claimed.attempts() + 1;
        let error = match error {
            SendError::Unclear { why } => SendError::Retry { after: None, why },
            error => error,
        };
        match error {
            SendError::Retry { after, why } if now < discard_at(claimed, config) => {
                let after = after.map(|after| after.min(LONGEST_PAUSE));
                let (base, max) = (config.base_delay, config.max_delay);
                let wait = retry::delay(claimed.attempts(), after, base, max, &mut rand::rng());
                let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
                let next = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                store.message_failed(claimed, &why, Some(next)).await?;
                // It means the channel and not this one message.
                if let Some(after) = after.and_then(|after| SignedDuration::try_from(after).ok()) {
                    store.pause_channel(channel, now.checked_add(after).unwrap_or(Timestamp::MAX)).await?;
                }
                self.delivered.retried += told;
                self.count("retried", claimed);
                tracing::warn!(key, told, channel, attempts, next_attempt = %next, why, "message not sent yet");
            }
            SendError::Retry { why, .. }
            | SendError::Permanent { why }
            | SendError::NoChannel { why }
            | SendError::Unclear { why }
            | SendError::Unfit { why } => {
                store.message_failed(claimed, &why, None).await?;
                self.delivered.failed += told;
                self.count("failed", claimed);
                tracing::error!(key, told, channel, attempts, why, "message discarded");
            }
        }
        Ok(())
    }

    /// Counts each message of a bundle, as the outbox does.
    fn count(&self, result: &'static str, claimed: &Claimed) {
        let told = u64::try_from(claimed.messages.len()).unwrap_or(u64::MAX);
        metrics::counter!("messages_total", "channel" => self.channel, "result" => result).increment(told);
    }
}

/// What goes to the channel for all in place of another one has as long again there.
fn discard_at(claimed: &Claimed, config: &OutboxConfig) -> Timestamp {
    let times = if claimed.diverted_from.is_some() { 2 } else { 1 };
    let longest = SignedDuration::try_from(config.discard_after.saturating_mul(times)).unwrap_or(SignedDuration::MAX);
    claimed.created_at().checked_add(longest).unwrap_or(Timestamp::MAX)
}

/// Delivers until `stop`.
pub async fn run(store: Store, channels: Channels, config: OutboxConfig, stop: CancellationToken) {
    let names = channels.names();
    while !stop.is_cancelled() {
        let wait = match deliver_due(&store, &channels, &config).await {
            Ok(_) => next(&store, &names).await.unwrap_or_else(|error| complain(&error)),
            Err(error) => complain(&error),
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait.max(Duration::from_millis(50))) => {}
        }
    }
}

/// After how long the outbox is to be looked at again.
async fn next(store: &Store, channels: &[&str]) -> Result<Duration, StoreError> {
    let Some(due) = store.next_message_due(channels).await? else { return Ok(LOOK) };
    let wait = Duration::try_from(due.duration_since(store.now().await?)).unwrap_or_default();
    Ok(wait.min(LOOK))
}

fn complain(error: &StoreError) -> Duration {
    tracing::error!(error = %crate::chain(error), "the outbox cannot be read");
    LOOK
}
