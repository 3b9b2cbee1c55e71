//! Findings to Slack and email. Knows no database and no cloud.
//!
//! What a message says is decided once, in [`message`] with its `view`, of several findings together in
//! [`bundle`], and of a day or a week in [`digest`] (all pure); [`slack`] and [`email`] render it and hand it to the one server each of
//! them talks to. Each `send`, `deliver` and `update` is exactly one attempt: it never retries, never sleeps and keeps nothing. The caller owns the outbox, reads
//! [`SendError`] to learn whether another attempt makes sense, and asks [`retry`] when.
//!
//! Refused here: deciding who is told what, remembering what was sent, and links that carry
//! authority (mail scanners follow links).
//!
//! Delivery is *at least once*: an attempt that times out may have arrived. A second delivery of
//! the same idempotency key is recognisable: the email's `Message-ID` and the Slack message's
//! metadata are derived from that key alone.

pub mod bundle;
mod charts;
pub mod digest;
pub mod email;
pub mod message;
pub mod retry;
pub mod slack;

#[cfg(test)]
mod bundle_tests;
mod error;
#[cfg(test)]
mod samples;
mod states;
mod text;
mod view;

pub use error::{Receipt, SendError};
