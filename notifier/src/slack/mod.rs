//! Slack: a message per finding or bundle, through the Web API's `chat.postMessage`; what has ended is shown in it by `chat.update`.
//!
//! Refused: incoming webhooks (they cannot say whether a message is a repetition), buttons (Slack
//! expects an answer to every click, links included), and rate control of its own: a refusal is
//! handed to the caller with Slack's `Retry-After`. One connection pool per [`Slack`]; a message is
//! under 10 kB.

mod config;
mod message;
mod service;
#[cfg(test)]
mod tests;

pub use config::{API_URL, ConfigError, SlackConfig};
pub use service::{Slack, Updated};
