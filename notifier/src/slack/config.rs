//! Where to post, and as whom. Checked once, when the channel is made.

use std::{net::IpAddr, time::Duration};

use url::{Host, Url};

use secrecy::{ExposeSecret as _, SecretString};

use crate::text::clean;

/// Slack's own Web API.
pub const API_URL: &str = "https://slack.com/api";

/// What a Slack channel needs.
#[derive(Debug, Clone)]
pub struct SlackConfig {
    /// A bot token (`xoxb-…`) with the scope `chat:write`.
    pub token: SecretString,
    /// A channel's id (`C…`) or name (`#waste`).
    pub channel: String,
    /// The Web API's base, `https://slack.com/api` but for a gateway or a test. Plain `http` is
    /// taken for a loopback address alone.
    pub api_url: String,
    /// How long one attempt may take, from name look-up to the answer's last byte.
    pub timeout: Duration,
    /// Whether messages have buttons: somebody must be there who hears of them.
    pub buttons: bool,
}

impl SlackConfig {
    /// A configuration for Slack's own Web API with a time-out of 30 s.
    #[must_use]
    pub fn new(token: SecretString, channel: impl Into<String>) -> Self {
        Self {
            token,
            channel: channel.into(),
            api_url: API_URL.to_owned(),
            timeout: Duration::from_secs(30),
            buttons: false,
        }
    }
}

/// Why a Slack configuration cannot work. Names the value to change, never the token.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The token is not one that may post messages.
    #[error(
        "the Slack token is {0}; it must be a bot token, which starts with `xoxb-` (Slack app, OAuth & Permissions)"
    )]
    Token(&'static str),
    /// The app-level token is none.
    #[error("the Slack app-level token is not one: it starts with `xapp-` (Slack app, Basic Information)")]
    AppToken,
    /// No channel was named.
    #[error("no Slack channel is set; name one by its id (`C…`) or as `#name`")]
    Channel,
    /// The signing secret is none.
    #[error("the Slack signing secret is not one: it has hexadecimal digits alone (Slack app, Basic Information)")]
    SigningSecret,
    /// The address is not one.
    #[error("the Slack API address `{address}` is unusable: {why}")]
    Address {
        /// As configured.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The host has no certificate store.
    #[error("the system's root certificates cannot be read (install `ca-certificates`, or set SSL_CERT_FILE)")]
    Roots(#[source] std::io::Error),
    /// The TLS library refused its own defaults.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// A channel as people write it, without what nobody sees.
///
/// # Errors
/// If nothing is left of it.
pub fn channel(text: &str) -> Result<String, ConfigError> {
    let channel = clean(text);
    if channel.is_empty() { Err(ConfigError::Channel) } else { Ok(channel) }
}

/// The checked address, without a final slash, and whether it is to be reached with TLS.
pub(super) fn api_url(address: &str) -> Result<Url, ConfigError> {
    let refuse = |why: &str| ConfigError::Address { address: address.to_owned(), why: why.to_owned() };
    let url = Url::parse(address.trim().trim_end_matches('/')).map_err(|e| refuse(&e.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::Address { address: "…".to_owned(), why: "it contains a login".to_owned() });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("it has a query or fragment"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(refuse("plain http would show the token to the network; use https")),
        _ => Err(refuse("only https is possible")),
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    }
}

/// Finds the mistakes that Slack would only answer with `invalid_auth`.
pub(super) fn token(token: &SecretString) -> Result<(), ConfigError> {
    let text = token.expose_secret();
    let kind = if text.is_empty() {
        "empty"
    } else if !text.chars().all(|c| c.is_ascii_graphic()) {
        "not plain printable text"
    } else if text.starts_with("http") {
        "a webhook address"
    } else if text.starts_with("xapp-") {
        "an app-level token"
    } else if !text.starts_with("xox") {
        "something else (perhaps the signing secret)"
    } else {
        return Ok(());
    };
    Err(ConfigError::Token(kind))
}

/// Likewise, of an app-level token.
pub(super) fn app_token(token: &SecretString) -> Result<(), ConfigError> {
    let text = token.expose_secret();
    let is_one = text.starts_with("xapp-") && text.chars().all(|c| c.is_ascii_graphic());
    if is_one { Ok(()) } else { Err(ConfigError::AppToken) }
}

#[cfg(test)]
mod tests {
    use super::{api_url, app_token, token};
    use secrecy::SecretString;

    #[test]
    fn plain_http_is_for_loopback_alone() {
        for good in [
            "https://slack.com/api",
            "https://slack.com/api/",
            "http://127.0.0.1:8080/api",
            "http://[::1]:1/api",
            "http://localhost:1",
        ] {
            let url = api_url(good).map(|url| url.to_string());
            assert!(url.is_ok(), "{good}: {url:?}");
        }
        for bad in [
            "http://slack.com/api",
            "http://127.0.0.1.evil.example/api",
            "ftp://127.0.0.1/api",
            "slack.com/api",
            "https://slack.com/api?x=1",
            "",
        ] {
            assert!(api_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_contain_no_secret() {
        let shown = api_url("https://bot:hunter2@slack.com/api").map_err(|e| e.to_string());
        assert!(shown.as_ref().is_err_and(|e| !e.contains("hunter2")), "{shown:?}");
        let shown = token(&SecretString::from("8f742231b10e8888")).map_err(|e| format!("{e} {e:?}"));
        assert!(shown.as_ref().is_err_and(|e| !e.contains("8f74")), "{shown:?}");
        assert!(token(&SecretString::from("xoxb-1-2-abc")).is_ok());
        for bad in ["xoxb-1-2-abc", "", "xapp-1 2"] {
            let shown = app_token(&SecretString::from(bad)).map_err(|e| format!("{e} {e:?}"));
            assert!(shown.as_ref().is_err_and(|e| bad.is_empty() || !e.contains(bad)), "{shown:?}");
        }
        assert!(app_token(&SecretString::from("xapp-1-A0-2-abc")).is_ok());
    }
}
