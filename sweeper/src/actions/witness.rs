//! Whether the database is the one of before: it lacks nothing of the audit log that this sweeper once saw in it.
//!
//! All that gives or takes a right is in that log: approvals, denials, people, nodes, the kill switch, what was done. A backup that lacks none of it is as good as the
//! database itself; one that lacks an entry is not, whatever it says. What was seen is kept in a file of the data
//! directory. One that is there and says nothing is no witness, so that the database counts as restored; where it cannot be read nothing is carried out. Where
//! it is lost with its container, or restored with the database, a pause of ten minutes in which nobody served voids what was approved before it, for want of
//! a better witness.

use super::ActError;
use crate::store::{Doer, Store};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
};

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
    pub(super) async fn check(&self, store: &Store, holder: &str) -> Result<Timestamp, ActError> {
        let by = Doer { who: holder.to_owned(), way: "service" };
        let (sequence, hash) = store.audit_head().await?;
        let kept = self.read()?;
        let lacks = match &kept {
            Kept::Nothing => None,
            Kept::Seen(seen) if seen.sequence == 0 => None,
            Kept::Seen(seen) if store.audit_hash(seen.sequence).await?.as_ref() == Some(&seen.hash) => None,
            Kept::Seen(Seen { sequence, .. }) => Some(format!(
                "the database lacks entry {sequence} of the audit log, which was in it before: it was restored from a backup"
            )),
            Kept::Damaged => Some(format!(
                "{} does not say what was seen of the audit log: the database may have been restored from a backup",
                self.file.display()
            )),
        };
        if let Some(because) = lacks {
            tracing::error!("{because}; all approvals are void, and the kill switch is on");
            store.note_restored(&because, &by).await?;
            let (sequence, hash) = store.audit_head().await?;
            self.write(&Seen { sequence, hash }).map_err(|error| self.failed(error))?;
        } else if kept != Kept::Seen(Seen { sequence, hash: hash.clone() })
            && let Err(error) = self.write(&Seen { sequence, hash })
        {
            tracing::warn!(file = %self.file.display(), %error, "what was seen of the audit log cannot be kept");
        }
        Ok(store.note_continuity(&by).await?)
    }

    fn read(&self) -> Result<Kept, ActError> {
        match fs::read(&self.file) {
            Ok(text) => Ok(serde_json::from_slice(&text).map_or(Kept::Damaged, Kept::Seen)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::Nothing),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, why: io::Error) -> ActError {
        ActError::Witness { file: self.file.clone(), why }
    }

    /// As a whole or not at all, also where the power fails.
    fn write(&self, seen: &Seen) -> io::Result<()> {
        let new = self.file.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(serde_json::to_string(seen)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.file)?;
        match self.file.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// What the file holds.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// There is none.
    Nothing,
    /// This.
    Seen(Seen),
    /// Nothing that was ever written to it.
    Damaged,
}
