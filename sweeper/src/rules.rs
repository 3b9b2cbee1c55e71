//! The rules file that agents are to follow: read at start, read again when it changes, never replaced by a bad one.
//!
//! A file that cannot be read or is refused leaves the one before in force; the log says line and reason, once per version of
//! the file, and `rules_refused_total` counts it. The file has 256 KiB at most.

use crate::watched::Watched;
use heartbeat::api::RulesOffer;
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;
use workload_rules::{MAX_FILE_BYTES, RulesError};

/// Counts versions of the file that were refused.
pub(crate) const REFUSED: &str = "rules_refused_total";

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

/// The one rules file that is served.
#[derive(Debug)]
pub struct RulesStore {
    path: PathBuf,
    watched: Watched<Served, RulesStoreError>,
}

impl RulesStore {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// See [`RulesStoreError`].
    pub fn open(path: &Path) -> Result<Self, RulesStoreError> {
        let watched = Watched::open(vec![path.to_owned()], |files| read(&files[0]))?;
        tracing::info!(file = %path.display(), version = watched.current().version, "serving rules");
        Ok(Self { path: path.to_owned(), watched })
    }

    /// The last file that was accepted.
    #[must_use]
    pub fn served(&self) -> Arc<Served> {
        self.watched.current()
    }

    /// Reads the file again whenever it has changed, until `stop`.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let told = |news: Result<Arc<Served>, RulesStoreError>| match news {
            Ok(served) => tracing::info!(file = %self.path.display(), version = served.version, "serving new rules"),
            Err(error) => {
                metrics::counter!(REFUSED).increment(1);
                let version = &self.served().version;
                tracing::error!(error = %crate::chain(&error), version, "these rules stay in force");
            }
        };
        self.watched.watch(stop, told).await;
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
    use crate::watched::Checks;

    fn read_again(rules_store: &RulesStore) -> Result<(), RulesStoreError> {
        let mut checks = Checks::default();
        rules_store.watched.check(&mut checks)?;
        rules_store.watched.check(&mut checks).map(drop)
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
}
