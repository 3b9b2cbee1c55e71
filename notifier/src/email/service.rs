//! The edge: one SMTP conversation per call, and what its end means.

use secrecy::ExposeSecret as _;
use std::{
    fs,
    time::{Duration, SystemTime},
};

use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, TlsParameters, TlsParametersBuilder},
    },
};

use super::{
    config::{self, ConfigError, EmailConfig, Tls},
    digest::Addressed,
    message::{self, Addresses, RenderError},
};
use crate::{
    Receipt, SendError,
    bundle::Notice,
    digest::Digest,
    message::FindingNotice,
    text::{clean, fit},
};

use url::Url;

/// One mail server and its recipients. Holds no connection between messages.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    addresses: Addresses,
    server: String,
    timeout: Duration,
}

impl Mailer {
    /// Checks the configuration and reads the extra root certificates; talks to nobody yet.
    ///
    /// # Errors
    /// [`ConfigError`] says which value cannot work and what it should be.
    pub fn new(config: EmailConfig) -> Result<Self, ConfigError> {
        let host = config.host.trim();
        if host.is_empty() {
            return Err(ConfigError::Host);
        }
        if config.to.is_empty() {
            return Err(ConfigError::NoRecipient);
        }
        let to = config.to.iter().map(|to| config::mailbox(to)).collect::<Result<_, _>>()?;
        let mut from = config::mailbox(&config.from)?;
        from.name.get_or_insert_with(|| "Cloud Sweeper".to_owned());
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(config.port)
            .tls(tls(&config, host)?)
            .timeout(Some(config.timeout));
        if let Some(login) = &config.login {
            let password = login.password.expose_secret().to_owned();
            builder = builder.credentials(Credentials::new(login.username.clone(), password));
        }
        Ok(Self {
            transport: builder.build(),
            addresses: Addresses { from, to },
            server: format!("{host}:{}", config.port),
            timeout: config.timeout,
        })
    }

    /// Sends one message to all recipients; exactly one attempt. The message's `Message-ID` is
    /// derived from `idempotency_key`, which is the same for each attempt at the same delivery.
    ///
    /// # Errors
    /// [`SendError`] says whether another attempt may help, and what to change if not.
    pub async fn send(&self, notice: &FindingNotice, idempotency_key: &str) -> Result<Receipt, SendError> {
        self.deliver(&Notice::One(notice), idempotency_key, None).await
    }

    /// The same about one finding or several, by itself or in reply to another message, which is named by its [`Receipt::reference`]: mail programs show both in one thread.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn deliver(
        &self,
        notice: &Notice<'_>,
        idempotency_key: &str,
        answers: Option<&str>,
    ) -> Result<Receipt, SendError> {
        let key = message::Key { idempotency_key, answers };
        let message =
            message::render(notice, &key, &self.addresses, SystemTime::now()).map_err(|error| fault(&error))?;
        let receipt = self.hand_over(message, idempotency_key).await?;
        Ok(Receipt { in_thread: answers.is_some(), ..receipt })
    }

    /// Sends a digest to one reader; exactly one attempt, and the same `Message-ID` for each attempt, as of [`Self::send`]. `unsubscribe` is where this reader can stop the digests of
    /// this list: an address that takes a POST without a login (RFC 8058), and that nothing is changed by when it is only looked at.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_digest(
        &self,
        digest: &Digest,
        to: &str,
        unsubscribe: Option<&Url>,
        idempotency_key: &str,
    ) -> Result<Receipt, SendError> {
        let to = config::mailbox(to).map_err(|error| SendError::Permanent { why: error.to_string() })?;
        let addressed = Addressed { from: &self.addresses.from, to, unsubscribe, idempotency_key };
        let message = super::digest::render(digest, &addressed, SystemTime::now()).map_err(|error| fault(&error))?;
        self.hand_over(message, idempotency_key).await
    }

    /// Whether the server takes this sender's connection and login; no message is sent.
    ///
    /// # Errors
    /// What is wrong, and what to change.
    pub async fn check(&self) -> Result<(), SendError> {
        match tokio::time::timeout(self.timeout, self.transport.test_connection()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(SendError::retry(format!("the mail server {} closed the connection", self.server))),
            Ok(Err(error)) => Err(self.judge(&error)),
            Err(_) => Err(self.late()),
        }
    }

    /// Sends all recipients a mail that says that this is a test; exactly one attempt.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_test(&self) -> Result<Receipt, SendError> {
        let key =
            format!("test-{}", SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos());
        let message = message::test(&key, &self.addresses, SystemTime::now()).map_err(|error| fault(&error))?;
        self.hand_over(message, &key).await
    }

    fn late(&self) -> SendError {
        SendError::retry(format!("the mail server {} did not finish within {:?}", self.server, self.timeout))
    }

    async fn hand_over(&self, message: Message, idempotency_key: &str) -> Result<Receipt, SendError> {
        // lettre's own time-out was seen not to fire on a server that stalls after DATA.
        match tokio::time::timeout(self.timeout, self.transport.send(message)).await {
            Ok(Ok(reply)) => Ok(Receipt {
                reference: Some(message::message_id(idempotency_key, &self.addresses.from)),
                in_thread: false,
                said: format!("{} {}", reply.code(), plain(&reply.message().collect::<Vec<_>>().join(" "))),
            }),
            Ok(Err(error)) => Err(self.judge(&error)),
            Err(_) => Err(self.late()),
        }
    }

    /// 5xx replies are the server's final word; everything else may pass.
    fn judge(&self, error: &lettre::transport::smtp::Error) -> SendError {
        let server = &self.server;
        let said = plain(&error.to_string());
        let why = format!("the mail server {server} did not take the message: {said}");
        match error.status().map(u16::from) {
            Some(530 | 534 | 535 | 538) => SendError::Permanent {
                why: format!("{why}. Check the email user name and password, and that this user may send"),
            },
            // Whether it is the content that is refused, or a recipient, no code tells for sure.
            Some(code) if code >= 500 => {
                SendError::Unfit { why: format!("{why}. Check the sender and each recipient") }
            }
            _ if said.contains("certificate") => SendError::retry(format!(
                "{why}. If the server's certificate comes from a private authority, name its root certificate as `ca_file`"
            )),
            _ => SendError::retry(why),
        }
    }
}

/// A message that could not be made, though its addresses were checked.
fn fault(error: &RenderError) -> SendError {
    SendError::Permanent { why: format!("{error}; this is a fault of Cloud Sweeper, please report it") }
}

/// A digest as its readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Subject and plain text.
    pub text: String,
    /// HTML, its pictures included, for a browser.
    pub html: String,
}

/// Lays a digest out and sends it to nobody.
///
/// # Errors
/// If it cannot be laid out, which is a fault of this crate.
pub fn preview(digest: &Digest) -> Result<Preview, SendError> {
    let (text, html) = super::digest::preview(digest).map_err(|error| fault(&error))?;
    Ok(Preview { text, html })
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailer").field("server", &self.server).finish_non_exhaustive()
    }
}

fn tls(config: &EmailConfig, host: &str) -> Result<lettre::transport::smtp::client::Tls, ConfigError> {
    use lettre::transport::smtp::client::Tls as Smtp;
    match config.tls {
        Tls::None if config::is_loopback(host) => Ok(Smtp::None),
        Tls::None => Err(ConfigError::Unprotected(host.to_owned())),
        Tls::StartTls => Ok(Smtp::Required(parameters(config, host)?)),
        Tls::Implicit => Ok(Smtp::Wrapper(parameters(config, host)?)),
    }
}

fn parameters(config: &EmailConfig, host: &str) -> Result<TlsParameters, ConfigError> {
    let mut builder: TlsParametersBuilder = TlsParameters::builder(host.to_owned());
    if let Some(path) = &config.ca_file {
        let pem = fs::read(path).map_err(|source| ConfigError::CaFile { path: path.clone(), source })?;
        if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
            return Err(ConfigError::NoCertificate(path.clone()));
        }
        builder = builder.add_root_certificate(Certificate::from_pem(&pem).map_err(ConfigError::Tls)?);
    }
    builder.build().map_err(ConfigError::Tls)
}

/// A remote's words, bounded and on one line.
fn plain(text: &str) -> String {
    fit(&clean(text), 300)
}
