//! Writes each digest when it is due, once whichever sweeper is first, and sends it to each reader by itself.
//!
//! A digest is written with its readers in one transaction, and sent *at least once*: a sweeper that dies between the mail server's answer and noting it sends it again under the same `Message-ID`. What was missed while
//! nobody served is sent late, once: the last one alone, about all the time since the one before. A list that is new here begins with its next one. Retries are those of the outbox.

use super::{
    Calendar, Facts, Span,
    links::{Links, LinksError},
    make, week_before,
};
use crate::{
    config::{Config, DigestList, OutboxConfig},
    outbox,
    savings::NotKnown,
    store::{DigestMail, NewDigest, Recipient, Store, StoreError},
    sweep::ScheduleError,
};
use jiff::{SignedDuration, Timestamp};
use notifier::{SendError, email::Mailer, retry};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Time for the database around an attempt, added to the attempt's own limit.
const MARGIN: Duration = Duration::from_secs(20);
/// So often it is asked what is due: a list may be configured anew elsewhere, and clocks are set.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Why digests cannot be written or sent now.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The mail server is not configured as it must be.
    #[error(transparent)]
    Channel(#[from] outbox::ChannelError),
    /// A time or a zone is none.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// What they are made of cannot be read.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
    /// There are no links.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A list with what follows from it.
#[derive(Debug)]
struct List {
    config: DigestList,
    calendar: Calendar,
}

/// What sends digests.
#[derive(Debug)]
pub struct Sender {
    store: Store,
    lists: Vec<List>,
    mailer: Mailer,
    retries: OutboxConfig,
    claim: Duration,
    public_url: Option<Url>,
}

/// What one round of delivery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mailed {
    /// Taken by the server.
    pub sent: usize,
    /// To be tried again.
    pub retried: usize,
    /// Discarded.
    pub failed: usize,
    /// Not sent, because their readers have left.
    pub withdrawn: usize,
}

impl Sender {
    /// As it is configured; none if no list or no mail server is.
    ///
    /// # Errors
    /// If the mail server or a schedule cannot be used.
    pub fn new(store: Store, config: &Config) -> Result<Option<Self>, DigestError> {
        if config.digest.lists.is_empty() {
            return Ok(None);
        }
        let Some(mailer) = outbox::mailer(&config.email)? else {
            tracing::warn!("digests are configured, and no mail server to send them by (`email.host`): none is sent");
            return Ok(None);
        };
        let list = |list: &DigestList| Ok(List { calendar: Calendar::of(list)?, config: list.clone() });
        let lists = config.digest.lists.iter().map(list).collect::<Result<_, ScheduleError>>()?;
        Ok(Some(Self {
            store,
            lists,
            mailer,
            retries: config.outbox.clone(),
            claim: config.email.timeout.saturating_add(MARGIN),
            // Checked when the configuration is read.
            public_url: config.api.public_url.as_deref().and_then(|url| url.parse().ok()),
        }))
    }

    /// Writes and sends until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let wait = match self.round(&stop).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::error!(error = %crate::chain(&error), "digests cannot be sent now; it is tried again");
                    LONGEST_WAIT
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(wait.max(Duration::from_millis(50))) => {}
            }
        }
    }

    async fn round(&self, stop: &CancellationToken) -> Result<Duration, DigestError> {
        self.write_due().await?;
        self.send_due(stop).await?;
        let now = self.store.now().await?;
        let next = self.lists.iter().filter_map(|list| list.calendar.next_after(now));
        let next = next.chain(self.store.next_digest_due().await?).min();
        let wait = next.map_or(LONGEST_WAIT, |next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
        Ok(wait.min(LONGEST_WAIT))
    }

    /// Writes the digests that are due and that nobody has written. Returns how many.
    ///
    /// # Errors
    /// If the database does not answer, or what they are made of is not known.
    pub async fn write_due(&self) -> Result<usize, DigestError> {
        let now = self.store.now().await?;
        let mut due = Vec::new();
        for list in &self.lists {
            let Some(latest) = list.calendar.latest_at(now) else { continue };
            match self.store.digest_told(&list.config.name).await? {
                Some(told) if told < latest => due.push((list, told, latest)),
                Some(_) => {}
                None => self.store.begin_digests(&list.config.name, latest).await?,
            }
        }
        let Some(since) = due.iter().map(|(_, told, latest)| (*told).min(week_before(*latest))).min() else {
            return Ok(0);
        };
        let facts = Facts::read(&self.store, since).await?;
        let links = self.links().await?;
        let mut written = 0;
        for (list, told, latest) in due {
            if self.write(&facts, list, Span { from: told, until: latest }, links.as_ref()).await? {
                written += 1;
                let (name, readers) = (&list.config.name, list.config.to.len());
                tracing::info!(list = name, due = %latest, readers, "digest written");
            }
        }
        Ok(written)
    }

    async fn write(&self, facts: &Facts, list: &List, span: Span, links: Option<&Links>) -> Result<bool, StoreError> {
        let config = &list.config;
        let digest = make(facts, config, &list.calendar, span);
        let recipient = |recipient: &String| {
            // Checked when the configuration is read.
            let address = notifier::email::address(recipient).ok()?;
            let token_sha256 = links.map(|links| links.hash(&config.name, &address));
            Some(Recipient { address, recipient: recipient.clone(), token_sha256 })
        };
        let to: Vec<Recipient> = config.to.iter().filter_map(recipient).collect();
        let new = NewDigest { list: &config.name, told: span.from, due: span.until, content: &digest, to: &to };
        self.store.write_digest(&new).await
    }

    async fn links(&self) -> Result<Option<Links>, LinksError> {
        match &self.public_url {
            Some(url) => Links::open(&self.store, url.clone()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Tries the mails that are due, until none is or until `stop`.
    ///
    /// # Errors
    /// If the database does not answer. What the mail server refuses is noted there.
    pub async fn send_due(&self, stop: &CancellationToken) -> Result<Mailed, DigestError> {
        let links = self.links().await?;
        let mut mailed = Mailed::default();
        // A list may have hundreds of readers: whoever stops a sweeper waits for one mail and not for all.
        while !stop.is_cancelled() {
            let now = self.store.now().await?;
            let claim = SignedDuration::try_from(self.claim).unwrap_or(SignedDuration::MAX);
            let until = now.checked_add(claim).unwrap_or(Timestamp::MAX);
            let Some(mail) = self.store.claim_digest(now, until).await? else { return Ok(mailed) };
            let reader = self.store.digest_reader(&mail.list, &mail.address).await?;
            if reader.is_some_and(|reader| reader.left_at.is_some()) {
                self.store.digest_withdrawn(&mail, "its reader wants no more of them").await?;
                mailed.withdrawn += 1;
                count("withdrawn");
                continue;
            }
            let link = links.as_ref().map(|links| links.link(&mail.list, &mail.address));
            let key = mail.key();
            match self.mailer.send_digest(&mail.digest, &mail.recipient, link.as_ref(), &key).await {
                Ok(receipt) => {
                    self.store.digest_sent(&mail, &receipt, self.store.now().await?).await?;
                    mailed.sent += 1;
                    count("sent");
                    let attempts = mail.attempts + 1;
                    tracing::info!(list = mail.list, due = %mail.due, attempts, server = receipt.said, "digest sent");
                }
                Err(error) => self.failed(&mail, error, &mut mailed).await?,
            }
        }
        Ok(mailed)
    }

    /// Has a mail tried again later, or discards it.
    async fn failed(&self, mail: &DigestMail, error: SendError, mailed: &mut Mailed) -> Result<(), StoreError> {
        let now = self.store.now().await?;
        let longest = SignedDuration::try_from(self.retries.discard_after).unwrap_or(SignedDuration::MAX);
        let discard_at = mail.created_at.checked_add(longest).unwrap_or(Timestamp::MAX);
        let (list, attempts) = (&mail.list, mail.attempts + 1);
        match error {
            SendError::Retry { after, why } if now < discard_at => {
                let (base, max) = (self.retries.base_delay, self.retries.max_delay);
                let wait = retry::delay(mail.attempts, after, base, max, &mut rand::rng());
                let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
                let next = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                self.store.digest_failed(mail, &why, Some(next)).await?;
                mailed.retried += 1;
                count("retried");
                tracing::warn!(list, due = %mail.due, attempts, next_attempt = %next, why, "digest not sent yet");
            }
            SendError::Retry { why, .. }
            | SendError::Unclear { why }
            | SendError::Permanent { why }
            | SendError::NoChannel { why }
            | SendError::Unfit { why } => {
                self.store.digest_failed(mail, &why, None).await?;
                mailed.failed += 1;
                count("failed");
                tracing::error!(list, due = %mail.due, attempts, why, "digest discarded");
            }
        }
        Ok(())
    }
}

fn count(result: &'static str) {
    metrics::counter!("digests_total", "result" => result).increment(1);
}
