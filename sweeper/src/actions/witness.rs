//! Whether the database is the one of before: it lacks nothing of the audit log that this sweeper once saw in it.
//!
//! All that gives or takes a right is in that log: approvals, denials, people, the kill switch, what was done. A backup that lacks none of it is as good as the
//! database itself; one that lacks an entry is not, whatever it says. What was seen is kept in a file of the data
//! directory. Where that is lost with its container, or restored with the database, a pause of ten minutes in which nobody served voids what was approved
//! before it, for want of a better witness.

use crate::store::{Doer, Store, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{fs, io, path::PathBuf};

/// What was last seen of the log.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    sequence: u64,
    hash: String,
}

/// Where it is kept.
#[derive(Debug)]
pub(super) struct Witness {
    file: PathBuf,
}

impl Witness {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Looks whether the database lacks anything. If it does, all approvals are void and the kill switch is on from then on. Says since when approvals count.
    pub(super) async fn check(&self, store: &Store, holder: &str) -> Result<Timestamp, StoreError> {
        let (sequence, hash) = store.audit_head().await?;
        if let Some(seen) = self.read()
            && seen.sequence > 0
            && store.audit_hash(seen.sequence).await?.as_ref() != Some(&seen.hash)
        {
            let because = format!(
                "the database lacks entry {} of the audit log, which was in it before: it was restored from a backup",
                seen.sequence
            );
            tracing::error!("{because}; all approvals are void, and the kill switch is on");
            let by = Doer { who: holder.to_owned(), way: "service" };
            store.note_restored(&because, &by).await?;
            let (sequence, hash) = store.audit_head().await?;
            self.write(&Seen { sequence, hash });
        } else {
            self.write(&Seen { sequence, hash });
        }
        store.note_continuity().await
    }

    fn read(&self) -> Option<Seen> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(file = %self.file.display(), %error, "what was seen of the audit log cannot be read");
                return None;
            }
        };
        serde_json::from_str(&text).ok()
    }

    /// As a whole or not at all.
    fn write(&self, seen: &Seen) {
        if self.read().as_ref() == Some(seen) {
            return;
        }
        let new = self.file.with_extension("new");
        let text = serde_json::to_string(seen).unwrap_or_default();
        if let Err(error) = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file)) {
            tracing::warn!(file = %self.file.display(), %error, "what was seen of the audit log cannot be kept");
        }
    }
}
