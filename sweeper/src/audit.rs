//! The audit log: a chain of entries of which none can be changed, removed or moved without its being seen. Pure.
//!
//! Each entry holds the hash of the one before it, and its own hash is the SHA-256 of its text as it is kept. Whoever can write the whole table can make a
//! new chain: so the last hash is told elsewhere, too, and a tail that was cut off is missed by it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Stands for the hash of what is before the first entry.
pub const NOTHING: &str = "";

/// What somebody did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Let somebody decide about plans.
    Enrolled,
    /// Tied an account of Slack to an approver.
    Linked,
    /// Made a token for an approver.
    TokenMade,
    /// Took an approver off the list; links and tokens are void.
    Removed,
    /// Approved a plan.
    Approved,
    /// Said no to a plan.
    Denied,
    /// Wants something left alone until a time.
    Snoozed,
    /// Wants something left alone for good.
    Exempted,
    /// Ended that before its time.
    Lifted,
    /// Wants an action undone.
    UndoAsked,
    /// Saw that somebody else has undone an action.
    Relapsed,
    /// Looked at what came undone in an account.
    Reviewed,
    /// Set the kill switch, so that nothing is carried out.
    SwitchedOn,
    /// Set the kill switch, so that what is approved is carried out.
    SwitchedOff,
    /// Found that the database was restored from a backup.
    Restored,
    /// Found that nobody had served for so long that approvals are void.
    Paused,
    /// Made a token by which a machine can join.
    JoinTokenMade,
    /// Took a node's key and tokens from it.
    NodeRevoked,
    /// Ended a dispute about a node in favour of its key.
    NodeSettled,
    /// Called the provider, or is about to.
    Called,
    /// Heard from the provider that it does what it was called for.
    Accepted,
    /// Heard nothing, or ended before it did.
    Lost,
    /// Saw the resource where it was to be.
    Done,
    /// Did nothing, because a guard refused.
    Voided,
    /// Saw that the provider refused, or that the resource did not get there.
    Failed,
}

impl Deed {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enrolled => "enrolled",
            Self::Linked => "linked",
            Self::TokenMade => "token made",
            Self::Removed => "removed",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Snoozed => "snoozed",
            Self::Exempted => "exempted",
            Self::Lifted => "lifted the exemption of",
            Self::UndoAsked => "wants to undo",
            Self::Relapsed => "saw somebody undo",
            Self::Reviewed => "looked at what came undone in",
            Self::SwitchedOn => "switched on the",
            Self::SwitchedOff => "switched off the",
            Self::Restored => "found to be restored the",
            Self::Paused => "found that nobody had served the",
            Self::JoinTokenMade => "made a join token for",
            Self::NodeRevoked => "revoked the node",
            Self::NodeSettled => "settled the dispute about",
            Self::Called => "called the provider for",
            Self::Accepted => "was heard by the provider about",
            Self::Lost => "lost the answer about",
            Self::Done => "carried out",
            Self::Voided => "did nothing for",
            Self::Failed => "failed with",
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Counted from 1, without a gap.
    pub sequence: u64,
    /// By the database's clock.
    pub at: Timestamp,
    /// Who did it: `ada`, or for what a command of the sweeper's own did `root on sweeper-1`.
    pub who: String,
    /// By which way.
    pub way: String,
    /// What.
    pub did: Deed,
    /// To what: an approver, the content hash of a plan.
    pub on: String,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detail: BTreeMap<String, String>,
    /// The hash of the entry before.
    pub before: String,
}

/// An entry as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// In its column.
    pub sequence: u64,
    /// The entry as JSON: what is hashed.
    pub text: String,
    /// Its hash.
    pub hash: String,
}

/// The hash of a kept text.
#[must_use]
pub fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// A chain in which nothing is amiss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Whole {
    /// So many entries.
    pub entries: u64,
    /// The hash of the last one; empty if there is none.
    pub head: String,
}

/// What is amiss, and where first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An entry is missing, or stands elsewhere.
    #[error("entry {expected} is not where it was: entry {found} follows the one before it")]
    Missing {
        /// That should be there.
        expected: u64,
        /// That is.
        found: u64,
    },
    /// An entry is not as it was written.
    #[error("entry {sequence} has been changed: {why}")]
    Changed {
        /// Which.
        sequence: u64,
        /// What does not fit.
        why: &'static str,
    },
    /// Entries at the end are missing.
    #[error("no entry has the hash {head}: entries have been cut off at the end")]
    Cut {
        /// That was told elsewhere.
        head: String,
    },
}

/// How far a chain has been read.
#[derive(Clone, Debug)]
pub struct Link<'a> {
    whole: Whole,
    /// The hash that was told elsewhere, until an entry has it.
    told: Option<&'a str>,
}

impl<'a> Link<'a> {
    /// Before the first entry.
    #[must_use]
    pub fn first(told: Option<&'a str>) -> Self {
        Self { whole: Whole { entries: 0, head: NOTHING.to_owned() }, told }
    }

    /// The number of the entry that comes next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.whole.entries + 1
    }

    /// Takes up the next entry.
    ///
    /// # Errors
    /// What is amiss with it: it stands elsewhere, or is not as it was written.
    pub fn add(&mut self, kept: &Kept) -> Result<(), Broken> {
        let Kept { sequence, text, hash: stated } = kept;
        let (sequence, expected) = (*sequence, self.next());
        if sequence != expected {
            return Err(Broken::Missing { expected, found: sequence });
        }
        let changed = |why| Err(Broken::Changed { sequence, why });
        if hash(text) != *stated {
            return changed("its text has another hash");
        }
        match serde_json::from_str::<Entry>(text) {
            Err(_) => return changed("its text is no entry"),
            Ok(entry) if entry.sequence != sequence => return changed("it was written at another place"),
            Ok(entry) if entry.before != self.whole.head => return changed("it does not follow the one before it"),
            Ok(_) => {}
        }
        self.told = self.told.filter(|told| told != stated);
        self.whole = Whole { entries: expected, head: stated.clone() };
        Ok(())
    }

    /// The whole chain, once all entries were taken up.
    ///
    /// # Errors
    /// If none of them has the hash that was told elsewhere: they have been cut off.
    pub fn whole(self) -> Result<Whole, Broken> {
        match self.told {
            Some(head) => Err(Broken::Cut { head: head.to_owned() }),
            None => Ok(self.whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verify(chain: impl IntoIterator<Item = Kept>, told: Option<&str>) -> Result<Whole, Broken> {
        let mut link = Link::first(told);
        chain.into_iter().try_for_each(|kept| link.add(&kept))?;
        link.whole()
    }

    fn chain(length: u64) -> Vec<Kept> {
        let mut before = NOTHING.to_owned();
        let entry = |sequence| {
            let entry = Entry {
                sequence,
                at: Timestamp::from_second(1_790_000_000 + i64::try_from(sequence).expect("a number")).expect("a time"),
                who: "ada".to_owned(),
                way: "shell".to_owned(),
                did: Deed::Approved,
                on: format!("plan {sequence}"),
                detail: BTreeMap::new(),
                before: before.clone(),
            };
            let text = serde_json::to_string(&entry).expect("JSON");
            before = hash(&text);
            Kept { sequence, text, hash: before.clone() }
        };
        (1..=length).map(entry).collect()
    }

    #[test]
    fn a_chain_as_it_was_written_is_whole() {
        assert_eq!(verify([], None), Ok(Whole { entries: 0, head: String::new() }));
        let all = chain(5);
        let head = all[4].hash.clone();
        assert_eq!(verify(all.clone(), None), Ok(Whole { entries: 5, head: head.clone() }));
        for told in &all {
            assert_eq!(verify(all.clone(), Some(&told.hash)), Ok(Whole { entries: 5, head: head.clone() }));
        }
    }

    #[test]
    fn what_was_cut_off_is_missed_by_the_head_that_was_told() {
        let mut all = chain(5);
        let head = all[4].hash.clone();
        all.truncate(4);
        assert!(verify(all.clone(), None).is_ok(), "nobody can tell without");
        assert_eq!(verify(all, Some(&head)), Err(Broken::Cut { head: head.clone() }));
        assert_eq!(verify([], Some(&head)), Err(Broken::Cut { head }));
    }

    proptest! {
        /// One character anywhere, one entry out, two exchanged, one twice: the first place that is wrong is named.
        #[test]
        fn whatever_is_changed_is_found(at in 0_usize..6, other in 0_usize..6, byte in any::<prop::sample::Index>(), kind in 0..4) {
            let all = chain(6);
            let mut changed = all.clone();
            let expected = match kind {
                0 => {
                    let text = changed[at].text.clone().into_bytes();
                    let place = byte.index(text.len());
                    let mut text = text;
                    text[place] ^= 1;
                    changed[at].text = String::from_utf8(text).expect("ASCII");
                    at + 1
                }
                1 if at < 5 => {
                    changed.remove(at);
                    at + 1
                }
                2 if at != other => {
                    changed.swap(at, other);
                    at.min(other) + 1
                }
                _ => {
                    changed.insert(at, all[at].clone());
                    at + 2
                }
            };
            let first = match verify(changed, None) {
                Err(Broken::Missing { expected, .. }) => expected,
                Err(Broken::Changed { sequence, .. }) => sequence,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(first, u64::try_from(expected).expect("a number"));
        }

        /// Who rewrites an entry with its hash breaks the link of the next one.
        #[test]
        fn an_entry_that_is_rewritten_with_its_hash_breaks_the_next_link(at in 0_usize..5) {
            let mut all = chain(6);
            let mut entry: Entry = serde_json::from_str(&all[at].text).expect("an entry");
            entry.who = "mallory".to_owned();
            let text = serde_json::to_string(&entry).expect("JSON");
            all[at] = Kept { sequence: entry.sequence, hash: hash(&text), text };
            let sequence = u64::try_from(at + 2).expect("a number");
            prop_assert_eq!(verify(all, None), Err(Broken::Changed { sequence, why: "it does not follow the one before it" }));
        }
    }
}
