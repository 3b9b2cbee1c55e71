//! Which server, as whom, to whom. Checked once, when the mailer is made.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use lettre::message::Mailbox;

use secrecy::SecretString;

/// How the connection is kept private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tls {
    /// Plain greeting, then TLS or nothing is sent (port 587, as a rule).
    #[default]
    StartTls,
    /// TLS from the first byte (port 465, as a rule).
    Implicit,
    /// No TLS: refused unless the host is a loopback address.
    None,
}

/// A user name and its password.
#[derive(Debug, Clone)]
pub struct Login {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: SecretString,
}

/// What sending email needs.
#[derive(Debug, Clone)]
pub struct EmailConfig {
    /// The submission server's name, as in its certificate.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How to log in; servers that know this host's address may want none.
    pub login: Option<Login>,
    /// The sender, `address@domain` or `Name <address@domain>`.
    pub from: String,
    /// The recipients, in the same form. All of them get the same message, in one delivery: if
    /// the server refuses one address, nobody gets it and the error says which.
    pub to: Vec<String>,
    /// How the connection is kept private.
    pub tls: Tls,
    /// A PEM file with root certificates to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// How long one attempt may take, from name look-up to the server's final reply.
    pub timeout: Duration,
}

impl EmailConfig {
    /// A configuration for STARTTLS on port 587, without login, with a time-out of 30 s.
    #[must_use]
    pub fn new(host: impl Into<String>, from: impl Into<String>, to: Vec<String>) -> Self {
        Self {
            host: host.into(),
            port: 587,
            login: None,
            from: from.into(),
            to,
            tls: Tls::default(),
            ca_file: None,
            timeout: Duration::from_secs(30),
        }
    }
}

/// Why an email configuration cannot work. Names the value to change, never the password.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No server was named.
    #[error("no SMTP host is set")]
    Host,
    /// Nobody would get the message.
    #[error("no email recipient is set")]
    NoRecipient,
    /// An address is not one.
    #[error("`{address}` is not an email address (`name@domain` or `Name <name@domain>`)")]
    Address {
        /// As configured.
        address: String,
        /// What is wrong with it.
        #[source]
        source: lettre::address::AddressError,
    },
    /// No TLS to a host that is not this one.
    #[error(
        "email without TLS is possible to this very host (127.0.0.1, ::1, localhost) only, not to `{0}`; use `starttls` or `implicit`"
    )]
    Unprotected(String),
    /// The extra root certificates cannot be read.
    #[error("the root certificates in `{path}` cannot be read")]
    CaFile {
        /// As configured.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The extra root certificates are none.
    #[error("`{0}` holds no certificate in PEM form")]
    NoCertificate(PathBuf),
    /// The TLS library refused the certificates.
    #[error("TLS cannot be set up with these root certificates")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// An address with its display name, if it has one.
pub(super) fn mailbox(address: &str) -> Result<Mailbox, ConfigError> {
    address.trim().parse().map_err(|source| ConfigError::Address { address: address.to_owned(), source })
}

/// The bare address of a recipient, `name@domain`.
///
/// # Errors
/// If it is none.
pub fn address(recipient: &str) -> Result<String, ConfigError> {
    Ok(mailbox(recipient)?.email.to_string())
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
