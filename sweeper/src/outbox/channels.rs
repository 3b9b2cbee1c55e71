//! The channels that are configured, and one attempt at each.

use super::{EMAIL, MARGIN, SLACK};
use crate::{
    config::{self, Config, EmailTls},
    store::{Claimed, ClaimedUpdate, Told},
};
use jiff::SignedDuration;
use notifier::{
    Receipt, SendError,
    bundle::{Bundle, Member, News, Notice},
    email::{EmailConfig, Login, Mailer, Tls},
    message::FindingNotice,
    slack::{Place, Slack, SlackConfig, Updated},
};
use std::time::Duration;

/// One attempt at Slack.
const SLACK_TIMEOUT: Duration = Duration::from_secs(30);

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

impl Channels {
    /// Sets up what the configuration names. A section without its main keys is off.
    ///
    /// # Errors
    /// If a section is on and cannot be used.
    pub fn new(config: &Config) -> Result<Self, ChannelError> {
        let slack = slack(&config.slack).map(Slack::new).transpose()?;
        let email = mailer(&config.email)?;
        Ok(Self { slack, email, email_timeout: config.email.timeout })
    }

    /// Names of the channels that are on.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let slack = self.slack.as_ref().map(|_| SLACK);
        slack.into_iter().chain(self.email.as_ref().map(|_| EMAIL)).collect()
    }

    /// How long a message of this channel is claimed for one attempt.
    pub(super) fn claim(&self, channel: &str) -> SignedDuration {
        // A reply that Slack takes in no thread is posted once more by itself.
        let attempt = if channel == EMAIL { self.email_timeout } else { SLACK_TIMEOUT.saturating_mul(2) };
        SignedDuration::try_from(attempt.saturating_add(MARGIN)).unwrap_or(SignedDuration::MAX)
    }

    pub(super) async fn send(&self, claimed: &Claimed) -> Result<Receipt, SendError> {
        let bundle;
        let notice = match claimed.messages.as_slice() {
            [message] => Notice::One(&message.notice),
            messages => {
                let opened = messages.iter().any(|message| message.event_id.is_opening());
                let member = |notice: &FindingNotice| Member { notice: notice.clone(), end: None };
                let members = messages.iter().map(|message| member(&message.notice)).collect();
                bundle = Bundle { news: if opened { News::Opened } else { News::Planned }, members };
                Notice::Several(&bundle)
            }
        };
        let (key, thread) = (claimed.key(), claimed.thread.as_deref());
        match (claimed.channel.as_str(), &self.slack, &self.email) {
            (SLACK, Some(slack), _) => {
                let (channel, instead_of) = (claimed.destination.as_deref(), claimed.diverted_from.as_deref());
                slack.deliver(&notice, &key, Place { channel, answers: thread, instead_of }).await
            }
            (EMAIL, _, Some(email)) => email.deliver(&notice, &key, thread).await,
            (channel, ..) => Err(not_configured(channel)),
        }
    }

    /// Shows in a message which of its findings have ended.
    pub(super) async fn update(&self, update: &ClaimedUpdate) -> Result<Updated, SendError> {
        let bundle;
        let notice = match update.told.as_slice() {
            [one] => Notice::One(one.end.as_ref().unwrap_or(&one.notice)),
            told => {
                let member = |told: &Told| Member { notice: told.notice.clone(), end: told.end.clone() };
                let news = if update.is_opening { News::Opened } else { News::Planned };
                bundle = Bundle { news, members: told.iter().map(member).collect() };
                Notice::Several(&bundle)
            }
        };
        match &self.slack {
            Some(slack) => slack.update(&notice, &update.key, &update.posted, update.diverted_from.as_deref()).await,
            None => Err(not_configured(SLACK)),
        }
    }
}

fn not_configured(channel: &str) -> SendError {
    SendError::Permanent { why: format!("the channel `{channel}` is not configured") }
}

/// Slack as it is configured, if it is.
pub(crate) fn slack(config: &config::SlackConfig) -> Option<SlackConfig> {
    let mut slack = SlackConfig::new(config.token.clone()?, config.channel.clone()?);
    slack.api_url.clone_from(&config.api_url);
    slack.timeout = SLACK_TIMEOUT;
    slack.buttons = config.hears();
    Some(slack)
}

/// What sends mail as it is configured, if it is.
pub(crate) fn mailer(config: &config::EmailConfig) -> Result<Option<Mailer>, ChannelError> {
    Ok(email(config).map(Mailer::new).transpose()?)
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
