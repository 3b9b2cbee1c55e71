//! Socket Mode: what people press and ask comes over a connection that this side opens, so that Slack needs to reach no address of ours.
//! <https://docs.slack.dev/apis/events-api/using-socket-mode>
//!
//! Who is at its other end TLS vouches for, and Slack's Web API, which names the address to whoever has the app-level token. The address holds a ticket: it is
//! never shown. Not slack-morphism's own listener, which logs that address, tries for ever without a word to its caller, and uses another TLS configuration.

use futures::{SinkExt as _, StreamExt as _};
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use slack_morphism::errors::SlackClientError;
use slack_morphism::prelude::{SlackApiAppsConnectionOpenRequest, SlackApiToken, SlackApiTokenValue, SlackHyperClient};
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    time::{Instant, interval, timeout},
};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};
use url::Url;

use super::{
    command,
    config::{self, ConfigError, SlackConfig},
    pressed, service,
    signing::Heard,
};
use crate::{SendError, text};

/// How often the other side is asked for a sign of life.
const PING_EVERY: Duration = Duration::from_secs(15);
/// After so long without one the connection is taken for broken.
const SILENT_AFTER: Duration = Duration::from_secs(45);
/// Slack sends the whole message along, at most 60 kB.
const LONGEST_BYTES: usize = 256 * 1024;

/// What is pressed, over connections that this side opens.
pub struct Socket {
    client: SlackHyperClient,
    token: SlackApiToken,
    tls: Arc<ClientConfig>,
    /// Whether Slack is a stand-in on this very host, spoken to without TLS.
    is_plain: bool,
    timeout: Duration,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Socket")
    }
}

/// What Slack says over it.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// What is to be acknowledged has one.
    envelope_id: Option<&'a str>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Acknowledgement<'a> {
    envelope_id: &'a str,
}

impl Socket {
    /// Checks the configuration; talks to nobody yet.
    ///
    /// # Errors
    /// [`ConfigError`] says which value cannot work and what it should be.
    pub fn new(config: &SlackConfig, app_token: &SecretString) -> Result<Self, ConfigError> {
        config::app_token(app_token)?;
        let url = config::api_url(&config.api_url)?;
        let is_plain = url.scheme() == "http";
        Ok(Self {
            client: service::client(&url)?,
            token: SlackApiToken::new(SlackApiTokenValue(app_token.expose_secret().to_owned())),
            tls: Arc::new(service::tls(!is_plain)?),
            is_plain,
            timeout: config.timeout,
        })
    }

    /// Opens a connection, says so once Slack greets, and hands on what is pressed until Slack asks for another connection. What `take` does not take, Slack sends again, or
    /// tells whoever pressed that it did not work.
    ///
    /// # Errors
    /// Why there is no connection, or none any more.
    pub async fn hear<T: Future<Output = bool>>(
        &self,
        greeted: impl Fn(),
        take: impl Fn(Heard) -> T,
    ) -> Result<(), SendError> {
        let mut connection = self.connect().await?;
        let mut pings = interval(PING_EVERY);
        let mut heard_at = Instant::now();
        loop {
            let message = tokio::select! {
                message = connection.next() => message,
                _ = pings.tick() => {
                    if heard_at.elapsed() > SILENT_AFTER {
                        return Err(SendError::retry(format!("Slack's socket was silent for {SILENT_AFTER:?}")));
                    }
                    self.say(&mut connection, Message::Ping(Vec::new().into())).await?;
                    continue;
                }
            };
            heard_at = Instant::now();
            let text = match message {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(_))) | None => return Err(SendError::retry("Slack closed its socket")),
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(broken(&error)),
            };
            let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&text) else {
                return Err(SendError::retry("what Slack said over its socket was not understood"));
            };
            match envelope.kind {
                "hello" => greeted(),
                "disconnect" => return Ok(()),
                _ => {}
            }
            let Some(envelope_id) = envelope.envelope_id else { continue };
            let is_taken = match heard(&envelope) {
                Some(heard) => take(heard).await,
                // Nothing that needs an answer: Slack is to forget it.
                None => true,
            };
            if is_taken {
                let said = serde_json::to_string(&Acknowledgement { envelope_id }).unwrap_or_default();
                self.say(&mut connection, Message::text(said)).await?;
            }
        }
    }

    /// Whether Slack gives this app a connection. It is not opened: one more would take its part of what is pressed.
    ///
    /// # Errors
    /// What is wrong with the token, the app's scopes or the way to Slack, and what to change.
    pub async fn check(&self) -> Result<(), SendError> {
        self.address().await.map(drop)
    }

    async fn address(&self) -> Result<Url, SendError> {
        let session = self.client.open_session(&self.token);
        let request = SlackApiAppsConnectionOpenRequest::new();
        let opened = timeout(self.timeout, session.apps_connections_open(&request)).await;
        let opened = opened.map_err(|_| self.silent())?;
        Ok(opened.map_err(|error| refused(&error))?.url.0)
    }

    fn silent(&self) -> SendError {
        SendError::retry(format!("Slack did not answer within {:?}", self.timeout))
    }

    async fn connect(&self) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, SendError> {
        let address = self.address().await?;
        let is_fit =
            address.scheme() == "wss" || (self.is_plain && address.scheme() == "ws" && config::is_loopback(&address));
        if !is_fit {
            return Err(SendError::retry("Slack named an address for its socket that is not encrypted"));
        }
        let limits =
            WebSocketConfig::default().max_message_size(Some(LONGEST_BYTES)).max_frame_size(Some(LONGEST_BYTES));
        let connector = if self.is_plain { Connector::Plain } else { Connector::Rustls(Arc::clone(&self.tls)) };
        let connected = connect_async_tls_with_config(address.as_str(), Some(limits), false, Some(connector));
        let (connection, _) =
            timeout(self.timeout, connected).await.map_err(|_| self.silent())?.map_err(|error| broken(&error))?;
        Ok(connection)
    }

    async fn say(
        &self,
        connection: &mut WebSocketStream<MaybeTlsStream<TcpStream>>,
        message: Message,
    ) -> Result<(), SendError> {
        match timeout(self.timeout, connection.send(message)).await {
            Ok(sent) => sent.map_err(|error| broken(&error)),
            Err(_) => Err(SendError::retry(format!("Slack's socket took nothing for {:?}", self.timeout))),
        }
    }
}

/// What an envelope tells that somebody said or asked; none if it tells of something else.
fn heard(envelope: &Envelope<'_>) -> Option<Heard> {
    let payload = envelope.payload?.get();
    match envelope.kind {
        "interactive" => pressed::heard(serde_json::from_str(payload).ok()?),
        "slash_commands" => command::of_event(serde_json::from_str(payload).ok()?).map(Heard::Asked),
        _ => None,
    }
}

fn broken(error: &tokio_tungstenite::tungstenite::Error) -> SendError {
    SendError::retry(format!("Slack's socket failed: {}", service::chain(error)))
}

/// Codes of <https://docs.slack.dev/reference/methods/apps.connections.open#errors>.
fn refused(error: &SlackClientError) -> SendError {
    let SlackClientError::ApiError(api) = error else { return service::judge(error, "its socket") };
    let code = text::fit(&text::clean(&api.code), 100);
    let remedy = match api.code.as_str() {
        "invalid_auth"
        | "not_authed"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "no_permission"
        | "missing_scope"
        | "not_allowed_token_type" => {
            "Make an app-level token with the scope `connections:write` (Slack app, Basic Information) and set it as `slack.app_token`"
        }
        "forbidden_team" | "access_denied" | "team_access_not_granted" | "ekm_access_denied" | "team_disabled" => {
            "A workspace administrator must allow the app"
        }
        _ => return SendError::retry(format!("Slack opened no socket: {code}")),
    };
    SendError::Permanent { why: format!("Slack opened no socket: {code}. {remedy}") }
}
