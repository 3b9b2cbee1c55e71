//! An action's life, from the claim of an approved plan to what the provider then showed. Pure.
//!
//! Each state is durable before what it announces is done, so that a crash in it leads to what stands here and never to a blind repetition. Whoever holds an
//! action holds its epoch; a process that was taken over changes nothing any more, because the epoch is another by then.

use serde::{Deserialize, Serialize};

/// How far an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process has taken it up. A crash here repeats from here.
    Claimed,
    /// The provider would do it, by its own dry run. A crash here repeats from the claim.
    DryRun,
    /// The node has been asked whether somebody works there. A crash here repeats from the claim, with another question.
    Asking,
    /// The call leaves now, or is not known not to have left. A crash here is looked into, and nothing is called again.
    Calling,
    /// The provider has taken it, and the resource is on its way.
    Awaiting,
    /// Nobody knows whether the provider was called: it is asked what is true.
    Reconciling,
    /// The resource is where it was to be.
    Done,
    /// Nothing was done: a guard refused, or the call did not leave in time.
    Voided,
    /// The provider refused, or the resource did not get there in time.
    Failed,
}

/// What happens to an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The provider's dry run says that it would.
    DryRunAccepted,
    /// The node is asked.
    Asked,
    /// Every guard lets it through, the answer of the node among them.
    MayAct,
    /// A guard refuses.
    Refused,
    /// The call did not leave in time, and whoever would have made it knows that.
    NotSent,
    /// The provider has taken the call.
    Accepted,
    /// The provider has refused it for certain, or its dry run has.
    Rejected,
    /// No answer came, or one that tells neither.
    Lost,
    /// The resource is where it was to be.
    Ended,
    /// It is not, and the time for it is over.
    TimedOut,
    /// Another process takes over from one that was not heard of for too long.
    TakenOver,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Claimed,
        Self::DryRun,
        Self::Asking,
        Self::Calling,
        Self::Awaiting,
        Self::Reconciling,
        Self::Done,
        Self::Voided,
        Self::Failed,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::DryRun => "dry_run",
            Self::Asking => "asking",
            Self::Calling => "calling",
            Self::Awaiting => "awaiting",
            Self::Reconciling => "reconciling",
            Self::Done => "done",
            Self::Voided => "voided",
            Self::Failed => "failed",
        }
    }

    /// The state of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing follows any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Voided | Self::Failed)
    }

    /// What an event makes of it; none if it cannot happen there, and then nothing is changed.
    #[must_use]
    pub const fn next(self, event: Event) -> Option<Self> {
        Some(match (self, event) {
            (Self::Claimed, Event::DryRunAccepted) => Self::DryRun,
            (Self::DryRun, Event::Asked) => Self::Asking,
            (Self::Asking, Event::MayAct) => Self::Calling,
            (Self::Claimed | Self::DryRun | Self::Asking, Event::Refused) | (Self::Calling, Event::NotSent) => {
                Self::Voided
            }
            (Self::Claimed, Event::Rejected) | (Self::Calling, Event::Rejected) => Self::Failed,
            (Self::Calling, Event::Accepted) => Self::Awaiting,
            (Self::Calling, Event::Lost | Event::TakenOver) => Self::Reconciling,
            (Self::Awaiting | Self::Reconciling, Event::Ended) => Self::Done,
            (Self::Awaiting | Self::Reconciling, Event::TimedOut) => Self::Failed,
            // Nothing was called: from the begin.
            (Self::Claimed | Self::DryRun | Self::Asking, Event::TakenOver) => Self::Claimed,
            (Self::Awaiting | Self::Reconciling, Event::TakenOver) => self,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod model;
