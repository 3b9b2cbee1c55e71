//! What happened to a finding, as an event: messages are made of these.

use crate::findings::FindingId;
use jiff::Timestamp;
use model::plan::ContentHash;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Between a finding and what names an action in its name.
pub(crate) const ACTED: &str = "/acted/";

/// Names one event: an opening by its finding's id, every other by that and the number of its record, or the action that is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub String);

impl EventId {
    /// The event that a finding's record of this number is of.
    #[must_use]
    pub fn new(finding: &FindingId, number: u32, kind: EventKind) -> Self {
        match kind {
            EventKind::Opened => Self(finding.0.clone()),
            _ => Self(format!("{finding}/{number}")),
        }
    }

    /// That an action on a plan of a finding is over.
    #[must_use]
    pub fn of_action(finding: &FindingId, plan: &ContentHash, direction: &str, attempt: u32) -> Self {
        Self(format!("{finding}{ACTED}{}/{direction}/{attempt}", plan.short()))
    }

    /// Whether it is that an action is over: people hear of that whatever becomes of the finding.
    #[must_use]
    pub fn is_of_action(&self) -> bool {
        self.0.contains(ACTED)
    }

    /// Whether it is that a finding was opened.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        !self.0.contains('/')
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It was found.
    Opened,
    /// What is known of it changed.
    Changed,
    /// A plan was made that would end it.
    Planned,
    /// Work was seen in between: another finding takes its place.
    Interrupted,
    /// The waste ended.
    Resolved,
    /// The machine is no more.
    Gone,
}

impl EventKind {
    const ALL: [Self; 6] = [Self::Opened, Self::Changed, Self::Planned, Self::Interrupted, Self::Resolved, Self::Gone];

    /// The word for it, everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Changed => "changed",
            Self::Planned => "planned",
            Self::Interrupted => "interrupted",
            Self::Resolved => "resolved",
            Self::Gone => "gone",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What happened to a finding, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub id: EventId,
    /// To which finding.
    pub finding: FindingId,
    /// What.
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_named_by_its_finding_and_what_follows_by_its_number() {
        let finding = FindingId("f-0123456789ab".into());
        assert_eq!(EventId::new(&finding, 1, EventKind::Opened).0, "f-0123456789ab");
        let planned = EventId::new(&finding, 2, EventKind::Planned);
        assert_eq!(planned.0, "f-0123456789ab/2");
        let plan = ContentHash::try_from("5d".repeat(32)).unwrap();
        let acted = EventId::of_action(&finding, &plan, "do", 1);
        assert!(acted.is_of_action() && !acted.is_opening() && !planned.is_of_action(), "{acted}");
        assert_eq!(acted.0.split('/').next(), Some("f-0123456789ab"));
        assert!(EventId::new(&finding, 1, EventKind::Opened).is_opening());
        assert!(!EventId::new(&finding, 2, EventKind::Planned).is_opening());
        assert!(EventKind::ALL.into_iter().all(|kind| EventKind::from_word(kind.as_str()) == Some(kind)));
        assert_eq!(EventKind::from_word("forgotten"), None);
    }
}
