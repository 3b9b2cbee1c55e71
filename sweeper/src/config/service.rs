//! Settings of what the sweeper talks to: its database, its agents, its people.

use super::{SlackTeam, duration, secret};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

/// `[store]`: the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `sqlite://…` or `postgres://…`; by default SQLite in the data directory. May hold a password, so it is never logged.
    #[serde(serialize_with = "secret::hidden")]
    pub url: Option<SecretString>,
    /// How long heartbeats are kept, and the reports of sweeps. On PostgreSQL whole days of heartbeats go.
    #[serde(with = "duration")]
    pub heartbeat_retention: Duration,
    /// How long rollups are kept: what each node and its workloads did in five minutes, and in an hour.
    #[serde(with = "duration")]
    pub rollup_retention: Duration,
    /// How long it is kept what a resource was before it changed or went away.
    #[serde(with = "duration")]
    pub history_retention: Duration,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            heartbeat_retention: Duration::from_secs(7 * 86_400),
            rollup_retention: Duration::from_secs(90 * 86_400),
            history_retention: Duration::from_secs(400 * 86_400),
        }
    }
}

/// `[api]`: the HTTP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApiConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Where the operator token is written at first start; by default `operator-token` in the data directory.
    pub operator_token_file: Option<PathBuf>,
    /// Under which address people's mail programs reach this server, `https://…`; with it each digest says how its reader can stop it.
    pub public_url: Option<String>,
    /// PEM file with the certificate to show, and those that lead from it to a root. It switches TLS on.
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the certificate's key.
    pub tls_key: Option<PathBuf>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8090));
        Self { listen, operator_token_file: None, public_url: None, tls_certificate: None, tls_key: None }
    }
}

impl ApiConfig {
    /// The files of certificate and key, if TLS is on.
    #[must_use]
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        Some((self.tls_certificate.as_deref()?, self.tls_key.as_deref()?))
    }
}

/// `[ingest]`: what agents send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IngestConfig {
    /// How far an agent's clock may be off.
    #[serde(with = "duration")]
    pub clock_skew: Duration,
    /// Where the fleet token is written at first start; by default `join-token` in the data directory.
    pub join_token_file: Option<PathBuf>,
    /// The rules that agents are to follow; without it, those that are built into each of them.
    pub rules_file: Option<PathBuf>,
}

impl Default for IngestConfig {
    fn default() -> Self {
        Self { clock_skew: Duration::from_secs(300), join_token_file: None, rules_file: None }
    }
}

/// `[slack]`: messages to a channel. Both a token and a channel switch it on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlackConfig {
    /// Bot token with `chat:write`, and for buttons `users:read`. After loading it also holds what `token_file` held.
    #[serde(serialize_with = "secret::hidden")]
    pub token: Option<SecretString>,
    /// File that holds the token.
    pub token_file: Option<PathBuf>,
    /// The app's signing secret, by which Slack's requests are known. It puts buttons into messages. After loading it also holds what `signing_secret_file` held.
    #[serde(serialize_with = "secret::hidden")]
    pub signing_secret: Option<SecretString>,
    /// File that holds the signing secret.
    pub signing_secret_file: Option<PathBuf>,
    /// The app's own token (`xapp-…`) with `connections:write`: by it the sweeper hears over a connection of its own (Socket Mode) what is pressed, and Slack needs to reach nothing.
    /// It puts buttons into messages, too. After loading it also holds what `app_token_file` held.
    #[serde(serialize_with = "secret::hidden")]
    pub app_token: Option<SecretString>,
    /// File that holds the app's own token.
    pub app_token_file: Option<PathBuf>,
    /// Name or id of the channel in which all is told that is no team's.
    pub channel: Option<String>,
    /// Whose findings are told in which channel; the first that a finding fits.
    pub teams: Vec<SlackTeam>,
    /// Base of Slack's Web API.
    pub api_url: String,
}

impl SlackConfig {
    /// Whether anybody hears what is pressed, so that messages may have buttons.
    #[must_use]
    pub fn hears(&self) -> bool {
        self.signing_secret.is_some() || self.app_token.is_some()
    }
}

impl Default for SlackConfig {
    fn default() -> Self {
        Self {
            token: None,
            token_file: None,
            signing_secret: None,
            signing_secret_file: None,
            app_token: None,
            app_token_file: None,
            channel: None,
            teams: Vec::new(),
            api_url: "https://slack.com/api".to_owned(),
        }
    }
}

/// How the connection to the mail server is encrypted. There is no way to switch it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmailTls {
    /// Plain connection that must be upgraded before anything is said (usual on port 587).
    Starttls,
    /// TLS from the first byte (usual on port 465).
    Implicit,
}

/// `[email]`: messages by mail. A host switches it on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmailConfig {
    /// Mail server.
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
    /// Login name.
    pub username: Option<String>,
    /// Password. After loading it also holds what `password_file` held.
    #[serde(serialize_with = "secret::hidden")]
    pub password: Option<SecretString>,
    /// File that holds the password.
    pub password_file: Option<PathBuf>,
    /// Sender, for example `Cloud Sweeper <sweeper@example.com>`.
    pub from: Option<String>,
    /// Recipients.
    pub to: Vec<String>,
    /// How the connection is encrypted.
    pub tls: EmailTls,
    /// A root certificate (PEM) to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Longest time for one delivery attempt.
    #[serde(with = "duration")]
    pub timeout: Duration,
}

impl Default for EmailConfig {
    fn default() -> Self {
        Self {
            host: None,
            port: 587,
            username: None,
            password: None,
            password_file: None,
            from: None,
            to: Vec::new(),
            tls: EmailTls::Starttls,
            ca_file: None,
            timeout: Duration::from_secs(30),
        }
    }
}

/// `[approvals]`: who may approve plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalsConfig {
    /// File with the rules of who may approve what; without one nobody may approve anything.
    pub policy_file: Option<PathBuf>,
}

/// `[outbox]`: how often and how patiently messages are retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutboxConfig {
    /// How long a message is tried unless a server refuses it for good.
    #[serde(with = "duration")]
    pub discard_after: Duration,
    /// Upper bound of the first delay; it doubles with each attempt.
    #[serde(with = "duration")]
    pub base_delay: Duration,
    /// Upper bound of every delay.
    #[serde(with = "duration")]
    pub max_delay: Duration,
    /// For so long a message waits for others that are told together with it.
    #[serde(with = "duration")]
    pub gather: Duration,
}

impl Default for OutboxConfig {
    fn default() -> Self {
        Self {
            discard_after: Duration::from_secs(72 * 3_600),
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(900),
            gather: Duration::from_secs(10),
        }
    }
}
