//! Email: a message per finding or bundle, and digests, HTML with a plain text alternative, over SMTP.
//!
//! Refused: links that do anything but show (mail scanners follow links), sending without TLS to
//! anything but this very host, and accepting a certificate that does not verify. One connection
//! per message: at most a few messages per sweep, so a pool would only keep idle connections that
//! servers drop.

mod config;
mod digest;
#[cfg(test)]
mod digest_tests;
mod message;
mod service;
#[cfg(test)]
mod tests;

pub use config::{ConfigError, EmailConfig, Login, Tls, address};
pub use service::{Mailer, Preview, preview};
