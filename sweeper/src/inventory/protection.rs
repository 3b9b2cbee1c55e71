//! What protects a machine from being stopped or ended.

use jiff::Timestamp;
use model::machine;

/// What protects a machine, as far as its provider says; EC2 tells it of one machine a call, so only idle ones are asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// From being stopped.
    pub stop: Option<bool>,
    /// From being ended.
    pub termination: Option<bool>,
}

/// The same in the words of guards. What is not known is unknown, unless the other one is on.
impl From<Protection> for machine::Protection {
    fn from(protection: Protection) -> Self {
        match protection {
            Protection { stop: Some(true), .. } => Self::On { by: "stop protection".to_owned() },
            Protection { termination: Some(true), .. } => Self::On { by: "termination protection".to_owned() },
            Protection { stop: Some(false), termination: Some(false) } => Self::Off,
            Protection { .. } => Self::Unknown,
        }
    }
}

/// What is kept of one machine that was, or is, to be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptProtection {
    /// Its place in the queue: when it was last asked about, whatever came of it, or when it first was to be.
    pub queued_at: Timestamp,
    /// What was last answered, and when; none until it was answered once.
    pub answer: Option<(Timestamp, Protection)>,
}
