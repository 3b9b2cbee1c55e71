//! What people say of plans, and why an answer does not count. Pure.
//!
//! Silence is no answer. One no ends a plan, whoever says it; a yes is one person's to exactly one plan, once.

pub use guards::act::Answer;

use crate::{config::ApprovalsConfig, verdict::words};
use guards::policy::{NobodyMay, NotAllowed, Policy};
use jiff::Timestamp;
use model::plan::{ActionClass, Plan};
use serde::Serialize;
use std::collections::BTreeMap;

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Given {
    /// Yes or no.
    pub answer: Answer,
    /// By the database's clock.
    pub at: Timestamp,
    /// Whose.
    pub approver: String,
    /// By which way.
    pub way: String,
    /// Why, if they said so.
    pub because: Option<String>,
}

/// An answer in one line.
#[must_use]
pub fn line(given: &Given) -> String {
    let answer = match given.answer {
        Answer::Approve => "yes",
        Answer::Deny => "no",
    };
    let because = given.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
    format!("{} said {answer}, {}{because}", given.approver, words::time(given.at.as_millisecond()))
}

/// Why nobody can approve a plan, whoever asks and whenever, and what to set so that somebody can; none if somebody can, or that is not known.
#[must_use]
pub fn nobody_may(
    config: &ApprovalsConfig,
    policy: &Policy,
    plan: &Plan,
    tags_before: Option<&BTreeMap<String, String>>,
) -> Option<String> {
    let why = policy.nobody_may(plan, tags_before)?;
    let classes = match plan.class() {
        ActionClass::Reversible => "",
        ActionClass::Destructive => " with `classes = [\"destructive\"]`",
    };
    Some(match why {
        NobodyMay::NoRule if config.policy_file.is_none() => {
            format!("there is no policy; write one with a rule{classes}, and name its file in `approvals.policy_file`")
        }
        NobodyMay::NoRule => {
            format!("{why}; add one{classes} to the file that `approvals.policy_file` names")
        }
        NobodyMay::TooFew { .. } => format!("{why}; add names to its `approvers`"),
    })
}

/// How far a plan is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Who has approved it, each once.
    pub approved_by: Vec<String>,
    /// So many must; none where nobody was asked for a yes.
    pub needs: Option<u32>,
    /// Until when a no has what it is about left alone, by the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
}

impl Tally {
    /// Whether as many have approved as must.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        let count = u32::try_from(self.approved_by.len()).unwrap_or(u32::MAX);
        self.needs.is_some_and(|needs| count >= needs)
    }
}

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    /// Nobody knows them.
    #[error("{who} is not enrolled; an administrator does that by `sweeper approvers add`")]
    NotEnrolled {
        /// Who asked.
        who: String,
    },
    /// There was never one of that hash.
    #[error("there is no such plan")]
    NoPlan,
    /// Somebody wants what it is about left alone.
    #[error("it is to be left alone: {said}")]
    LeftAlone {
        /// What they said.
        said: String,
    },
    /// Its finding has ended, or another plan has taken its place.
    #[error("the plan is not its finding's any more: that has ended, or another plan has taken its place")]
    Withdrawn,
    /// It is too late.
    #[error("the plan was valid until {at}; a new one is made at the next sweep if the finding still holds")]
    Expired {
        /// When it ended.
        at: Timestamp,
    },
    /// One no is enough.
    #[error("{by} has said no to it")]
    Denied {
        /// Who.
        by: String,
    },
    /// The policy does not let them.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// A second yes of one person is none.
    #[error("you have said so already")]
    Already,
}
