//! Spare capacity (Spot): how often it is taken away, and what must not be put on it.

use model::HourlyRate;
use serde::{Deserialize, Serialize};

/// What shows that a machine holds something that must not be lost, or that somebody waits for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "sign", rename_all = "snake_case")]
pub enum StateSign {
    /// A database, by the name of its executable.
    #[error("it runs the database {command}")]
    Database {
        /// `postgres`
        command: String,
    },
    /// A volume beside the root.
    #[error("it has the data volume {id}")]
    DataVolume {
        /// `vol-…`
        id: String,
    },
    /// An address that others know.
    #[error("it has the elastic address {address}")]
    ElasticAddress {
        /// Dotted.
        address: String,
    },
    /// Others call it.
    #[error("others call it at port {port}")]
    InboundPeers {
        /// Which.
        port: u16,
    },
    /// People work on it.
    #[error("people had interactive sessions on it")]
    InteractiveSessions,
}

/// Of the machines of a pool, how many the provider took away within a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// Fewer than so many per cent.
    Under(u8),
    /// More than the highest bound that the provider states.
    Above,
    /// Not told.
    Unknown,
}

/// A pool that is recommended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Chosen {
    /// In which zone.
    pub zone: String,
    /// Of which type.
    pub machine_type: String,
    /// The highest price of the last 30 days.
    pub highest: HourlyRate,
    /// How often machines of it are taken away.
    pub band: Band,
    /// Expected rework, in millionths of the time that the runs take.
    pub rework_per_million: u64,
}
