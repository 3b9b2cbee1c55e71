//! Delivers what lies in the outbox.
//!
//! A message is written in the transaction of the event that it tells, one per event and channel for good, so it is sent at least once and
//! never again once a server has taken it: a sweeper that dies between the server's answer and noting it sends it once more, under the same Message-ID
//! or metadata. A message that answers another one waits for it, and names it by what its server gave it. One message is claimed at a time, for as long as its one attempt may take and
//! `MARGIN` more, so that no claim runs out while its holder still sends; a sweeper that dies with a claim leaves the
//! message to others after that. The channels do not wait for each other. Retries are drawn with full jitter and honour `Retry-After`; a message is
//! discarded when the server refuses it for good or after `outbox.discard_after`, never because of a number of attempts: a
//! server may be down for a weekend. What is due, and who holds a claim, is by the database's clock: sweepers need not agree on the time.

use crate::{
    config::{self, Config, EmailTls, OutboxConfig},
    store::{Answered, Claimed, Store, StoreError},
};
use jiff::{SignedDuration, Timestamp};
use notifier::{
    Receipt, SendError,
    email::{EmailConfig, Login, Mailer, Tls},
    retry,
    slack::{Slack, SlackConfig},
};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time for the database around an attempt, added to the attempt's own limit.
const MARGIN: Duration = Duration::from_secs(20);
/// How often the outbox is looked at when nothing says when the next message is due.
const LOOK: Duration = Duration::from_secs(5);
/// A server may ask for so much time and no more: one that asks for a year is broken, or means harm.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// One attempt at Slack.
const SLACK_TIMEOUT: Duration = Duration::from_secs(30);

/// Name of the Slack channel in the outbox.
pub const SLACK: &str = "slack";
/// Name of the email channel in the outbox.
pub const EMAIL: &str = "email";

/// The channels that are configured.
#[derive(Debug, Default)]
pub struct Channels {
    slack: Option<Slack>,
    email: Option<Mailer>,
    email_timeout: Duration,
}

/// Why a channel cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// Slack.
    #[error("[slack] cannot be used")]
    Slack(#[from] notifier::slack::ConfigError),
    /// Email.
    #[error("[email] cannot be used")]
    Email(#[from] notifier::email::ConfigError),
}

/// What one round of delivery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Taken by a server.
    pub sent: usize,
    /// To be tried again.
    pub retried: usize,
    /// Discarded.
    pub failed: usize,
}

impl Channels {
    /// Sets up what the configuration names. A section without its main keys is off.
    ///
    /// # Errors
    /// If a section is on and cannot be used.
    pub fn new(config: &Config) -> Result<Self, ChannelError> {
        let slack = slack(&config.slack).map(Slack::new).transpose()?;
        let email = email(&config.email).map(Mailer::new).transpose()?;
        Ok(Self { slack, email, email_timeout: config.email.timeout })
    }

    /// Names of the channels that are on.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let slack = self.slack.as_ref().map(|_| SLACK);
        slack.into_iter().chain(self.email.as_ref().map(|_| EMAIL)).collect()
    }

    /// How long a message of this channel is claimed for one attempt.
    fn claim(&self, channel: &str) -> SignedDuration {
        // A reply that Slack takes in no thread is posted once more by itself.
        let attempt = if channel == EMAIL { self.email_timeout } else { SLACK_TIMEOUT.saturating_mul(2) };
        SignedDuration::try_from(attempt.saturating_add(MARGIN)).unwrap_or(SignedDuration::MAX)
    }

    async fn send(&self, message: &Claimed, answers: Option<&str>) -> Result<Receipt, SendError> {
        let key = format!("{}/{}", message.event_id, message.channel);
        match (message.channel.as_str(), &self.slack, &self.email) {
            (SLACK, Some(slack), _) => slack.reply(&message.notice, &key, answers).await,
            (EMAIL, _, Some(email)) => email.reply(&message.notice, &key, answers).await,
            (channel, ..) => Err(SendError::Permanent { why: format!("the channel `{channel}` is not configured") }),
        }
    }
}

fn slack(config: &config::SlackConfig) -> Option<SlackConfig> {
    let mut slack = SlackConfig::new(config.token.clone()?, config.channel.clone()?);
    slack.api_url.clone_from(&config.api_url);
    slack.timeout = SLACK_TIMEOUT;
    Some(slack)
}

fn email(config: &config::EmailConfig) -> Option<EmailConfig> {
    if config.to.is_empty() {
        return None;
    }
    let mut email = EmailConfig::new(config.host.clone()?, config.from.clone()?, config.to.clone());
    email.port = config.port;
    email.login =
        config.username.clone().zip(config.password.clone()).map(|(username, password)| Login { username, password });
    email.tls = match config.tls {
        EmailTls::Starttls => Tls::StartTls,
        EmailTls::Implicit => Tls::Implicit,
    };
    email.ca_file.clone_from(&config.ca_file);
    email.timeout = config.timeout;
    Some(email)
}

/// Tries every message that is due now, once.
///
/// # Errors
/// If the database does not answer. What a server refuses is noted in the outbox.
pub async fn deliver_due(store: &Store, channels: &Channels, config: &OutboxConfig) -> Result<Delivered, StoreError> {
    let each = channels.names().into_iter().map(|channel| deliver_channel(store, channels, config, channel));
    let mut delivered = Delivered::default();
    for one in futures::future::join_all(each).await {
        let one = one?;
        delivered.sent += one.sent;
        delivered.retried += one.retried;
        delivered.failed += one.failed;
    }
    Ok(delivered)
}

async fn deliver_channel(
    store: &Store,
    channels: &Channels,
    config: &OutboxConfig,
    channel: &'static str,
) -> Result<Delivered, StoreError> {
    let mut delivered = Delivered::default();
    loop {
        let now = store.now().await?;
        let until = now.checked_add(channels.claim(channel)).unwrap_or(Timestamp::MAX);
        let Some(message) = store.claim_message(channel, now, until).await? else { return Ok(delivered) };
        attempt(store, channels, config, &message, &mut delivered).await?;
    }
}

async fn attempt(
    store: &Store,
    channels: &Channels,
    config: &OutboxConfig,
    message: &Claimed,
    delivered: &mut Delivered,
) -> Result<(), StoreError> {
    let (event, channel) = (&message.event_id, message.channel.as_str());
    let counter = |result: &'static str| {
        metrics::counter!("messages_total", "channel" => channel.to_owned(), "result" => result).increment(1);
    };
    let answers = match &message.answers {
        None => None,
        Some(answered) => match store.answered(answered, channel).await? {
            // What it answers is said first.
            Answered::Waits(until) => {
                let soonest = store.now().await?.checked_add(LOOK).unwrap_or(Timestamp::MAX);
                return store.postpone_message(message, until.max(soonest)).await;
            }
            Answered::Sent(receipt) => Some(receipt),
            Answered::Unnamed => None,
        },
    };
    let result = channels.send(message, answers.as_deref()).await;
    let now = store.now().await?;
    match result {
        Ok(receipt) => {
            store.message_sent(message, &receipt, now).await?;
            delivered.sent += 1;
            counter("sent");
            tracing::info!(%event, channel, attempts = message.attempts + 1, server = receipt.said, "message sent");
        }
        Err(SendError::Retry { after, why }) if now < discard_at(message, config) => {
            let after = after.map(|after| after.min(LONGEST_PAUSE));
            let wait = retry::delay(message.attempts, after, config.base_delay, config.max_delay, &mut rand::rng());
            let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
            let next = now.checked_add(wait).unwrap_or(Timestamp::MAX);
            store.message_failed(message, &why, Some(next)).await?;
            // It means the channel and not this one message.
            if let Some(after) = after.and_then(|after| SignedDuration::try_from(after).ok()) {
                store.pause_channel(channel, now.checked_add(after).unwrap_or(Timestamp::MAX)).await?;
            }
            delivered.retried += 1;
            counter("retried");
            tracing::warn!(%event, channel, attempts = message.attempts + 1, next_attempt = %next, why, "message not sent yet");
        }
        Err(SendError::Retry { why, .. } | SendError::Permanent { why }) => {
            store.message_failed(message, &why, None).await?;
            delivered.failed += 1;
            counter("failed");
            tracing::error!(%event, channel, attempts = message.attempts + 1, why, "message discarded");
        }
    }
    Ok(())
}

fn discard_at(message: &Claimed, config: &OutboxConfig) -> Timestamp {
    let longest = SignedDuration::try_from(config.discard_after).unwrap_or(SignedDuration::MAX);
    message.created_at.checked_add(longest).unwrap_or(Timestamp::MAX)
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
