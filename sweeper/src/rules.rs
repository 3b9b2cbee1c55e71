//! The rules file that agents are to follow: read at start, read again when it changes, never replaced by a bad one.
//!
//! A file that cannot be read or is refused leaves the one before in force; the log says line and reason, once per version of
//! the file, and `rules_refused_total` counts it. Cost: one `stat` every 2 s, and the file (256 KiB at most) in memory.

use heartbeat::api::RulesOffer;
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use workload_rules::{MAX_FILE_BYTES, RulesError};

/// Counts versions of the file that were refused.
pub(crate) const REFUSED: &str = "rules_refused_total";
/// How often the file is looked at.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Why a rules file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum RulesStoreError {
    /// It cannot be read.
    #[error("the rules file {} cannot be read; check `ingest.rules_file`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is no acceptable rules file.
    #[error("the rules file {} is refused: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Line, reason and remedy.
        source: RulesError,
    },
}

/// A rules file that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// As the file says it.
    pub version: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// The file.
    pub file: Vec<u8>,
}

impl Served {
    /// What acknowledgements say of it.
    #[must_use]
    pub fn offer(&self) -> RulesOffer {
        RulesOffer::File { version: self.version.clone(), sha256: self.sha256.clone() }
    }
}

/// By which a change of the file is seen: inode, size, when its content changed, and when anything about it did (a `chmod` makes a file readable).
type Stamp = Option<(u64, u64, (i64, i64), (i64, i64))>;

/// What was seen of the file so far; `None` is nothing yet.
#[derive(Debug, Default)]
struct Checks {
    last: Option<Stamp>,
    read: Option<Stamp>,
}

/// The one rules file that is served.
#[derive(Debug)]
pub struct RulesStore {
    path: PathBuf,
    served: RwLock<Arc<Served>>,
}

impl RulesStore {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// See [`RulesStoreError`].
    pub fn open(path: &Path) -> Result<Self, RulesStoreError> {
        let served = read(path)?;
        tracing::info!(file = %path.display(), version = served.version, "serving rules");
        Ok(Self { path: path.to_owned(), served: RwLock::new(Arc::new(served)) })
    }

    /// The last file that was accepted.
    #[must_use]
    pub fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self, served: Served) {
        if served != *self.served() {
            tracing::info!(file = %self.path.display(), version = served.version, "serving new rules");
            *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
        }
    }

    fn stamp(&self) -> Stamp {
        let metadata = fs::metadata(&self.path).ok()?;
        let content = (metadata.mtime(), metadata.mtime_nsec());
        Some((metadata.ino(), metadata.size(), content, (metadata.ctime(), metadata.ctime_nsec())))
    }

    /// Reads the file again if it has changed and two checks in a row found it the same: half of a file that is being copied may be a rules
    /// file as well.
    fn check(&self, checks: &mut Checks) -> Result<(), RulesStoreError> {
        let now = Some(self.stamp());
        let is_at_rest = std::mem::replace(&mut checks.last, now) == now;
        if !is_at_rest || checks.read == now {
            return Ok(());
        }
        let served = read(&self.path);
        if Some(self.stamp()) != now {
            return Ok(());
        }
        checks.read = now;
        self.take(served?);
        Ok(())
    }

    /// Reads the file again whenever it has changed, until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        // What changed between start and now is seen as well: nothing has been checked yet.
        let mut checks = Checks::default();
        loop {
            if let Err(error) = self.check(&mut checks) {
                metrics::counter!(REFUSED).increment(1);
                let version = &self.served().version;
                tracing::error!(error = %crate::chain(&error), version, "these rules stay in force");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
        }
    }
}

/// Reads and checks a rules file.
///
/// # Errors
/// See [`RulesStoreError`].
pub fn read(path: &Path) -> Result<Served, RulesStoreError> {
    let unreadable = |source| RulesStoreError::Read { path: path.to_owned(), source };
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut file = Vec::new();
    fs::File::open(path).and_then(|opened| opened.take(limit).read_to_end(&mut file)).map_err(unreadable)?;
    match workload_rules::parse(&file) {
        Ok(rules) => Ok(Served { version: rules.version, sha256: hex::encode(Sha256::digest(&file)), file }),
        Err(source) => Err(RulesStoreError::Refused { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn read_again(rules_store: &RulesStore) -> Result<(), RulesStoreError> {
        let mut checks = Checks::default();
        rules_store.check(&mut checks)?;
        rules_store.check(&mut checks)
    }

    #[test]
    fn a_bad_file_is_refused_by_line_and_the_one_before_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.toml");
        let opened = RulesStore::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(opened.contains("cannot be read"), "{opened}");
        fs::write(&path, "version = \"1\"\nbase = \"built-in\"\n").unwrap();
        let rules_store = RulesStore::open(&path).unwrap();
        let first = rules_store.served();
        assert_eq!(first.version, "1");
        fs::write(&path, "version = \"2\"\n[housekeeping]\nnames = [\"bash\"]\n").unwrap();
        let refused = read_again(&rules_store).unwrap_err().to_string();
        assert!(refused.contains("line 3, column 10: `bash`"), "{refused}");
        assert_eq!(rules_store.served(), first);
        fs::write(&path, "version = \"3\"\n").unwrap();
        read_again(&rules_store).unwrap();
        assert_eq!(rules_store.served().version, "3");
        assert_ne!(rules_store.served().sha256, first.sha256);
    }

    #[test]
    fn half_of_a_file_that_is_being_copied_is_not_served_and_a_chmod_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.toml");
        let write = |text: &str| fs::write(&path, text).unwrap();
        write("version = \"1\"\n");
        let rules_store = RulesStore::open(&path).unwrap();
        let mut checks = Checks::default();
        let mut served_after_a_check = || {
            rules_store.check(&mut checks).unwrap();
            rules_store.served().version.clone()
        };
        write("version = \"2\"\n");
        assert_eq!(served_after_a_check(), "1");
        write("version = \"22\"\nbase = \"built-in\"\n");
        assert_eq!(served_after_a_check(), "1", "it was another one a moment ago");
        assert_eq!(served_after_a_check(), "22");
        let before = rules_store.stamp();
        let began = std::time::Instant::now();
        // The kernel's clock for files goes in steps of up to 10 ms.
        while rules_store.stamp() == before {
            assert!(began.elapsed() < Duration::from_secs(10), "a change of rights is not seen");
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
    }
}
