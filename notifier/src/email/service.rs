//! The edge: one SMTP conversation per call, and what its end means.

use secrecy::ExposeSecret as _;
use std::{
    fs,
    time::{Duration, SystemTime},
};

use lettre::{
    AsyncSmtpTransport, AsyncTransport, Tokio1Executor,
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, TlsParameters, TlsParametersBuilder},
    },
};

use super::{
    config::{self, ConfigError, EmailConfig, Tls},
    message::{self, Addresses},
};
use crate::{
    Receipt, SendError,
    bundle::Notice,
    message::FindingNotice,
    text::{clean, fit},
};

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
        let message = message::render(notice, &key, &self.addresses, SystemTime::now()).map_err(|error| {
            SendError::Permanent { why: format!("{error}; this is a fault of Cloud Sweeper, please report it") }
        })?;
        // lettre's own time-out was seen not to fire on a server that stalls after DATA.
        match tokio::time::timeout(self.timeout, self.transport.send(message)).await {
            Ok(Ok(reply)) => Ok(Receipt {
                reference: Some(message::message_id(idempotency_key, &self.addresses.from)),
                in_thread: answers.is_some(),
                said: format!("{} {}", reply.code(), plain(&reply.message().collect::<Vec<_>>().join(" "))),
            }),
            Ok(Err(error)) => Err(self.judge(&error)),
            Err(_) => Err(SendError::retry(format!(
                "the mail server {} did not finish within {:?}",
                self.server, self.timeout
            ))),
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
