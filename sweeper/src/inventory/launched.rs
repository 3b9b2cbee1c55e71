//! Who started a machine.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who started a machine for the first time, as the provider's trail tells. Every text is a stranger's: bounded, and made
/// visible. Where it was called from is never kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedBy {
    /// In the provider's words: `arn:aws:sts::123456789012:assumed-role/Admin/alice`.
    pub principal: Option<String>,
    /// The service that did it on somebody's behalf: `autoscaling.amazonaws.com`.
    pub via: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
    /// The event that tells so.
    pub event: Option<String>,
}

impl fmt::Display for LaunchedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.principal.as_deref().unwrap_or("somebody whom the trail does not name"))?;
        if let Some(via) = &self.via {
            write!(f, ", through {via}")?;
        }
        self.at.map_or(Ok(()), |at| write!(f, ", at {}", at.strftime("%Y-%m-%d %H:%M:%S UTC")))
    }
}

/// How much of a scope's trail was read: everything between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trail {
    /// The oldest moment.
    pub from: Timestamp,
    /// The latest.
    pub until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_trail_leaves_out_is_left_out() {
        let nobody = LaunchedBy::default();
        assert_eq!(nobody.to_string(), "somebody whom the trail does not name");
        let via = LaunchedBy {
            principal: Some("arn:aws:iam::123456789012:user/ada".into()),
            via: Some("autoscaling.amazonaws.com".into()),
            at: Some(Timestamp::UNIX_EPOCH),
            event: None,
        };
        let words = "arn:aws:iam::123456789012:user/ada, through autoscaling.amazonaws.com, at 1970-01-01 00:00:00 UTC";
        assert_eq!(via.to_string(), words);
    }
}
