//! The edge: one HTTPS request to Slack per call, and what its answer means.

use secrecy::ExposeSecret as _;
use std::{sync::Arc, time::Duration};

use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use slack_morphism::{
    errors::SlackClientError,
    prelude::{
        SlackApiChatPostMessageRequest, SlackApiChatUpdateRequest, SlackApiToken, SlackApiTokenValue, SlackClient,
        SlackClientHyperConnector, SlackHyperClient, SlackMessageContent,
    },
};
use tokio::sync::OnceCell;
use url::Url;

use super::{
    codes::{is_gone, is_of_the_channel, is_unclear, is_unfit, may_be_the_threads, remedy},
    config::{self, ConfigError, SlackConfig},
    message,
    place::Place,
};
use crate::{
    Receipt, SendError,
    bundle::Notice,
    message::FindingNotice,
    text::{clean, fit},
};

/// A workspace, and the channel that whatever names none is posted in. Cheap to keep, meant to be shared; holds a connection pool.
pub struct Slack {
    pub(super) client: SlackHyperClient,
    pub(super) token: SlackApiToken,
    pub(super) timeout: Duration,
    /// Where the Web API is.
    pub(super) api: Url,
    pub(super) buttons: bool,
    /// The app's own, once Slack has said it.
    pub(super) workspace: OnceCell<String>,
    pub(super) channel: String,
}

impl Slack {
    /// Checks the configuration; talks to nobody yet.
    ///
    /// # Errors
    /// [`ConfigError`] says which value cannot work and what it should be.
    pub fn new(config: SlackConfig) -> Result<Self, ConfigError> {
        config::token(&config.token)?;
        let channel = config::channel(&config.channel)?;
        let api = config::api_url(&config.api_url)?;
        Ok(Self {
            client: client(&api)?,
            api,
            workspace: OnceCell::new(),
            token: SlackApiToken::new(SlackApiTokenValue(config.token.expose_secret().to_owned())),
            channel,
            timeout: config.timeout,
            buttons: config.buttons,
        })
    }

    /// Posts one message; exactly one attempt. `idempotency_key` is the same for each attempt at
    /// the same (event, channel), and is found again in the message's metadata.
    ///
    /// # Errors
    /// [`SendError`] says whether another attempt may help, and what to change if not.
    pub async fn send(&self, notice: &FindingNotice, idempotency_key: &str) -> Result<Receipt, SendError> {
        self.deliver(&Notice::One(notice), idempotency_key, Place::DEFAULT).await
    }

    /// The same about one finding or several, by itself or in the thread of another message; it stands in that one's channel as well, since not
    /// everybody follows a thread. Where Slack takes no reply (the thread is locked, or the message is gone), the message is posted by itself in the same channel; one for all also where that channel takes nothing any more, and then in the configured one.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn deliver(
        &self,
        notice: &Notice<'_>,
        idempotency_key: &str,
        place: Place<'_>,
    ) -> Result<Receipt, SendError> {
        let content = message::render(notice, idempotency_key, self.buttons, place.instead_of);
        let (channel, thread) = place.channel_and_thread();
        let mut channel = channel.unwrap_or(&self.channel);
        if thread.is_some() {
            match self.post(content.clone(), channel, thread).await {
                Err(Failed::Api(error)) if may_be_the_threads(&error) => {}
                // What is for all goes on where all are told now, whatever became of the channel in which they were.
                Err(Failed::Api(error)) if place.channel.is_none() && is_of_the_channel(&error) => {
                    channel = &self.channel;
                }
                answer => return answer.map_err(|error| error.of_a_message(channel)),
            }
        }
        self.post(content, channel, None).await.map_err(|error| error.of_a_message(channel))
    }

    /// Puts a notice in the place of one that was posted, which is named by its [`Receipt::reference`], and was meant for another channel if it stands `instead_of` one;
    /// exactly one attempt. Nobody is pinged.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn update(
        &self,
        notice: &Notice<'_>,
        idempotency_key: &str,
        posted: &str,
        instead_of: Option<&str>,
    ) -> Result<Updated, SendError> {
        let Some((channel, ts)) = posted.split_once('/') else {
            return Ok(Updated::Gone { why: "what names the message is not of Slack's form".to_owned() });
        };
        let content = message::render(notice, idempotency_key, self.buttons, instead_of);
        let request = SlackApiChatUpdateRequest::new(channel.into(), content, ts.into());
        let session = self.client.open_session(&self.token);
        match tokio::time::timeout(self.timeout, session.chat_update(&request)).await {
            Ok(Ok(updated)) => {
                let said = plain(&format!("updated {}/{}", updated.channel.0, updated.ts.0));
                Ok(Updated::Shown(Receipt { reference: Some(posted.to_owned()), in_thread: false, said }))
            }
            Ok(Err(SlackClientError::ApiError(api))) if is_gone(&api.code) => {
                Ok(Updated::Gone { why: format!("Slack does not let the message be updated: {}", plain(&api.code)) })
            }
            Ok(Err(error)) => Err(judge(&error, channel)),
            Err(_) => Err(Failed::Silent(self.timeout).judge(channel)),
        }
    }

    pub(super) async fn post(
        &self,
        content: SlackMessageContent,
        channel: &str,
        thread: Option<&str>,
    ) -> Result<Receipt, Failed> {
        let mut request = SlackApiChatPostMessageRequest::new(channel.into(), content)
            .with_unfurl_links(false)
            .with_unfurl_media(false);
        if let Some(ts) = thread {
            request = request.with_thread_ts(ts.into()).with_reply_broadcast(true);
        }
        let session = self.client.open_session(&self.token);
        let answer = tokio::time::timeout(self.timeout, session.chat_post_message(&request));
        match answer.await {
            Ok(Ok(posted)) => {
                let reference = reference(&posted.channel.0, &posted.ts.0);
                let said = plain(&format!("posted as {}/{}", posted.channel.0, posted.ts.0));
                Ok(Receipt { reference, in_thread: thread.is_some(), said })
            }
            Ok(Err(error)) => Err(Failed::Api(Box::new(error))),
            Err(_) => Err(Failed::Silent(self.timeout)),
        }
    }
}

/// How an update ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The message shows it.
    Shown(Receipt),
    /// The message is gone, or stays as it is for good: there is nothing to update.
    Gone {
        /// What Slack said.
        why: String,
    },
}

/// Why one request was in vain.
pub(super) enum Failed {
    /// The answer, or what came in its place.
    Api(Box<SlackClientError>),
    /// There was none in time.
    Silent(Duration),
}

impl Failed {
    fn judge(&self, channel: &str) -> SendError {
        match self {
            Self::Api(error) => judge(error, channel),
            Self::Silent(timeout) => SendError::retry(format!("Slack did not answer within {timeout:?}")),
        }
    }

    /// The same of a message, which may stand in another channel.
    pub(super) fn of_a_message(&self, channel: &str) -> SendError {
        match (self, self.judge(channel)) {
            (Self::Api(error), SendError::Permanent { why }) if is_of_the_channel(error) => {
                SendError::NoChannel { why }
            }
            (Self::Api(error), SendError::Retry { why, .. }) if is_unclear(error) => SendError::Unclear { why },
            (_, judged) => judged,
        }
    }
}

/// What names a message, if it is of the form that Slack documents; anything else is not kept.
fn reference(channel: &str, ts: &str) -> Option<String> {
    let is_id = (1..=32).contains(&channel.len()) && channel.bytes().all(|b| b.is_ascii_alphanumeric());
    let (seconds, rest) = ts.split_once('.')?;
    let is_number = |text: &str| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    (is_id && is_number(seconds) && is_number(rest)).then(|| format!("{channel}/{ts}"))
}

impl std::fmt::Debug for Slack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slack").field("channel", &self.channel).finish_non_exhaustive()
    }
}

/// A client of the Web API at this address.
pub(super) fn client(url: &Url) -> Result<SlackHyperClient, ConfigError> {
    let https = HttpsConnectorBuilder::new().with_tls_config(tls(url.scheme() == "https")?);
    let connector = match url.scheme() {
        "https" => https.https_only().enable_all_versions().build(),
        _ => https.https_or_http().enable_http1().build(),
    };
    let connector = SlackClientHyperConnector::with_connector(connector);
    Ok(SlackClient::new(connector.with_slack_api_url(url.as_str().trim_end_matches('/'))))
}

/// The system's root certificates, or none where only plain http will be spoken.
pub(super) fn tls(with_roots: bool) -> Result<ClientConfig, ConfigError> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ConfigError::Tls)?;
    let config = if with_roots {
        config.with_native_roots().map_err(ConfigError::Roots)?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// What a failure means for the next attempt. Error codes that are not known here may be new
/// and passing, so they are retried: a wasted attempt is cheaper than a lost message.
pub(super) fn judge(error: &SlackClientError, channel: &str) -> SendError {
    match error {
        SlackClientError::RateLimitError(limit) => {
            SendError::Retry { after: limit.retry_after, why: "Slack asks to send more slowly (429)".to_owned() }
        }
        SlackClientError::ApiError(api) => {
            let mut why = format!("Slack refused the message for {channel}: {}", plain(&api.code));
            if let Some(details) = &api.errors {
                why = format!("{why} ({})", plain(&details.join("; ")));
            }
            match remedy(&api.code) {
                Some(remedy) if is_unfit(&api.code) => SendError::Unfit { why: format!("{why}. {remedy}") },
                Some(remedy) => SendError::Permanent { why: format!("{why}. {remedy}") },
                None => SendError::retry(why),
            }
        }
        SlackClientError::HttpError(http) => {
            let status = http.status_code;
            let why = format!("the Slack API address answered HTTP {status}");
            if status.is_server_error() || status.as_u16() == 408 {
                SendError::retry(why)
            } else {
                SendError::Permanent { why: format!("{why}. Check the configured Slack API address") }
            }
        }
        SlackClientError::HttpProtocolError(protocol) => {
            let cause = protocol.cause.as_deref();
            let cause = cause.map_or_else(String::new, |cause| format!(": {}", chain(cause)));
            SendError::retry(format!("Slack could not be reached{cause}"))
        }
        SlackClientError::ProtocolError(protocol) => {
            SendError::retry(format!("Slack's answer was not understood: {}", plain(&protocol.json_error.to_string())))
        }
        _ => SendError::retry("the connection to Slack failed"),
    }
}

/// A remote's words, bounded and on one line.
fn plain(text: &str) -> String {
    fit(&clean(text), 300)
}

/// An error and its sources, each said once.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    plain(&text)
}

#[cfg(test)]
mod tests {
    use super::reference;

    #[test]
    fn only_what_looks_like_slacks_own_name_of_a_message_is_kept() {
        assert_eq!(reference("C012AB", "1772419830.000100").as_deref(), Some("C012AB/1772419830.000100"));
        for (channel, ts) in [
            ("C012AB", "1\u{0}.5"),
            ("C012AB", "17724198300001"),
            ("C012AB", ".1"),
            ("C012AB", "1."),
            ("C012AB", "1.2.3"),
            ("", "1.2"),
            ("C0/12", "1.2"),
            ("C012AB", "123456789012345678901.0"),
        ] {
            assert_eq!(reference(channel, ts), None, "{channel:?} {ts:?}");
        }
    }
}
