//! Files that are read at start and again whenever they change, and never replaced by bad ones.
//!
//! Cost: one `stat` of each file every 2 s, and what was read in memory.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// How often the files are looked at.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// By which a change of a file is seen: inode, size, when its content changed, and when anything about it did (a `chmod` makes a file readable).
type Stamp = Option<(u64, u64, (i64, i64), (i64, i64))>;

/// What was seen of the files so far; `None` is nothing yet.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    last: Option<Vec<Stamp>>,
    read: Option<Vec<Stamp>>,
}

type Read<T, E> = Box<dyn Fn(&[PathBuf]) -> Result<T, E> + Send + Sync>;

/// What some files say, as last accepted.
pub(crate) struct Watched<T, E> {
    files: Vec<PathBuf>,
    read: Read<T, E>,
    current: RwLock<Arc<T>>,
}

impl<T: std::fmt::Debug, E> std::fmt::Debug for Watched<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("files", &self.files).field("current", &self.current).finish_non_exhaustive()
    }
}

impl<T: PartialEq, E> Watched<T, E> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// If they are not accepted.
    pub(crate) fn open(
        files: Vec<PathBuf>,
        read: impl Fn(&[PathBuf]) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        let current = RwLock::new(Arc::new(read(&files)?));
        Ok(Self { files, read: Box::new(read), current })
    }

    /// What was last accepted.
    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn stamps(&self) -> Vec<Stamp> {
        let stamp = |file: &PathBuf| {
            let metadata = fs::metadata(file).ok()?;
            let content = (metadata.mtime(), metadata.mtime_nsec());
            Some((metadata.ino(), metadata.size(), content, (metadata.ctime(), metadata.ctime_nsec())))
        };
        self.files.iter().map(stamp).collect()
    }

    /// Reads the files again if one has changed and two checks in a row found them the same: half of a file that is being copied may be accepted as
    /// well. What is new, if anything is.
    ///
    /// # Errors
    /// If they are not accepted; what was accepted before stays.
    pub(crate) fn check(&self, checks: &mut Checks) -> Result<Option<Arc<T>>, E> {
        let now = Some(self.stamps());
        let is_at_rest = std::mem::replace(&mut checks.last, now.clone()) == now;
        if !is_at_rest || checks.read == now {
            return Ok(None);
        }
        let read = (self.read)(&self.files);
        if Some(self.stamps()) != now {
            return Ok(None);
        }
        checks.read = now;
        let read = read?;
        if read == *self.current() {
            return Ok(None);
        }
        let read = Arc::new(read);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&read);
        Ok(Some(read))
    }

    /// Reads the files again whenever they have changed, until `stop`, and tells what came of it.
    pub(crate) async fn watch(&self, stop: CancellationToken, told: impl Fn(Result<Arc<T>, E>)) {
        // What changed between start and now is seen as well: nothing has been checked yet.
        let mut checks = Checks::default();
        loop {
            if let Some(news) = self.check(&mut checks).transpose() {
                told(news);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::{os::unix::fs::PermissionsExt as _, path::Path};

    /// Accepts what ends in a full stop.
    fn whole(files: &[PathBuf]) -> Result<String, String> {
        let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
        if text.ends_with('.') { Ok(text) } else { Err(text) }
    }

    fn write(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
    }

    #[test]
    fn half_of_a_file_that_is_being_copied_is_not_read_and_a_bad_one_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["one", "other"].map(|name| folder.path().join(name));
        write(&files[0], "a ");
        write(&files[1], "b.");
        let watched = Watched::open(files.to_vec(), whole).unwrap();
        let mut checks = Checks::default();
        let mut check = || watched.check(&mut checks).map(|news| news.map(|text| text.as_str().to_owned()));
        assert_eq!([check(), check(), check()], [Ok(None), Ok(None), Ok(None)], "nothing is new");
        write(&files[0], "aa. ");
        write(&files[1], "");
        assert_eq!(check(), Ok(None), "it was another one a moment ago");
        write(&files[1], "bb.");
        assert_eq!([check(), check()], [Ok(None), Ok(Some("aa. bb.".into()))]);
        write(&files[1], "bbb");
        assert_eq!([check(), check(), check()], [Ok(None), Err("aa. bbb".into()), Ok(None)], "told once");
        assert_eq!(*watched.current(), "aa. bb.");
    }

    #[test]
    fn a_change_of_rights_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one");
        write(&file, "a.");
        let watched = Watched::open(vec![file.clone()], whole).unwrap();
        let before = watched.stamps();
        let began = std::time::Instant::now();
        // The kernel's clock for files goes in steps of up to 10 ms.
        while watched.stamps() == before {
            assert!(began.elapsed() < Duration::from_secs(10), "a change of rights is not seen");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}
