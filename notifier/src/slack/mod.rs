//! Slack: a message per finding or bundle, through the Web API's `chat.postMessage`; what has ended, and what people said of a plan, is shown in it by
//! `chat.update`. Whoever serves Slack's interactions may have buttons in messages that tell of one plan, and finds out by [`Signing`] what was pressed; where Slack reaches nothing of ours,
//! by a [`Socket`]. By the same ways comes what somebody asks by the slash command, [`COMMAND`]; only they are answered.
//!
//! Refused: incoming webhooks (they cannot say whether a message is a repetition), and rate control of its own: a refusal is
//! handed to the caller with Slack's `Retry-After`. One connection pool per [`Slack`]; a message is
//! under 10 kB.

mod answers;
mod buttons;
mod check;
mod codes;
mod command;
mod config;
mod delay;
mod forms;
mod message;
mod people;
mod place;
mod pressed;
mod reply;
mod said;
mod service;
mod signing;
mod socket;
#[cfg(test)]
mod tests;

pub use answers::{Answer, List, Row};
pub use check::SpeaksFor;
pub use command::{Asked, COMMAND, Command};
pub use config::{API_URL, ConfigError, SlackConfig, channel};
pub use delay::Delay;
pub use people::{Account, Member, NotAPerson};
pub use place::Place;
pub use pressed::{Pressed, Proof};
pub use reply::Reply;
pub use said::{Form, Said, Trigger};
pub use service::{Slack, Updated};
pub use signing::{Heard, NotSlacks, SIGNATURE_HEADER, Signing, TIMESTAMP_HEADER};
pub use socket::Socket;
