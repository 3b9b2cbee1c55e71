//! Who started a machine, and who submitted a job.

use std::fmt;

use jiff::Timestamp;
use model::ResourceKind;
use serde::{Deserialize, Serialize};

use super::Kind;

/// What somebody started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launched {
    /// A machine.
    Machine,
    /// A job of AWS Batch.
    Job,
}

impl Launched {
    /// The kind of resource that it is.
    #[must_use]
    pub const fn resource(self) -> ResourceKind {
        match self {
            Self::Machine => ResourceKind::Instance,
            Self::Job => ResourceKind::BatchJob,
        }
    }

    /// What the list of who started it is called.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Machine => Kind::Launch,
            Self::Job => Kind::Submission,
        }
    }
}

/// Who started a machine for the first time, or submitted a job, as the provider's trail tells. Every text is a stranger's: bounded, and made
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

impl LaunchedBy {
    /// Name of the session under which a role was assumed: of a role that ECS gave to a task, that task's id.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        let (_, role_and_session) = self.principal.as_deref()?.split_once(":assumed-role/")?;
        let (_, session) = role_and_session.rsplit_once('/')?;
        Some(session).filter(|session| !session.is_empty())
    }
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

    #[test]
    fn a_session_is_told_of_a_role_alone() {
        let of = |principal: &str| {
            let by = LaunchedBy { principal: Some(principal.into()), ..LaunchedBy::default() };
            by.session().map(str::to_owned)
        };
        assert_eq!(of("arn:aws:sts::1:assumed-role/head/0123abcd").as_deref(), Some("0123abcd"));
        assert_eq!(of("arn:aws-cn:sts::1:assumed-role/path/head/0123abcd").as_deref(), Some("0123abcd"));
        for none in
            ["arn:aws:iam::1:user/ada", "arn:aws:sts::1:assumed-role/head", "arn:aws:sts::1:assumed-role/head/", ""]
        {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(LaunchedBy::default().session(), None);
    }
}
