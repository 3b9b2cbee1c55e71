//! SQLite's files: only their owner may read them, whatever directory they lie in.
//!
//! SQLite makes a database with the rights that the process's mask leaves, and its `-wal` and `-shm` with those of the database:
//! <https://www.sqlite.org/src/file/src/os_unix.c> (`findCreateFileMode`). So the database is made here, before SQLite opens it.

use super::StoreError;
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    io::Errno,
};
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Rights of a database's files.
const OWN: u32 = 0o600;

/// Makes an empty database that its owner alone may read, if there is none and one is to be made, and takes the others' rights from one that is there.
pub(super) fn keep_private(database: &Path, is_made: bool) -> Result<(), StoreError> {
    if is_made {
        make(database).map_err(|source| StoreError::File { path: database.to_path_buf(), source })?;
    }
    let beside = |end: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    for file in [database.to_path_buf(), beside("-wal"), beside("-shm")] {
        narrow(&file);
    }
    Ok(())
}

/// Makes it without opening it: whoever closes a file releases the locks that SQLite holds on it in another connection of this process.
/// <https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>
fn make(database: &Path) -> io::Result<()> {
    match mknodat(CWD, database, FileType::RegularFile, Mode::from_raw_mode(OWN), 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A file of somebody else's is left as it is: its owner decides. What cannot be narrowed is told, and used all the same.
fn narrow(file: &Path) {
    let Ok(found) = fs::metadata(file) else { return };
    let mode = found.mode() & 0o7777;
    if !found.is_file() || mode & 0o077 == 0 {
        return;
    }
    let shown = file.display();
    if found.uid() != rustix::process::geteuid().as_raw() {
        tracing::warn!(file = %shown, mode = format!("{mode:04o}"), "the database can be read by others, and is not this user's; run chmod 600");
        return;
    }
    match fs::set_permissions(file, Permissions::from_mode(mode & !0o077)) {
        Ok(()) => {
            tracing::warn!(file = %shown, before = format!("{mode:04o}"), "the database could be read by others, and is its owner's alone from now on");
        }
        Err(error) => tracing::warn!(file = %shown, %error, "the database can be read by others; run chmod 600"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use crate::store::Store;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
    };

    const FILES: [&str; 3] = ["sweeper.db", "sweeper.db-wal", "sweeper.db-shm"];

    /// A directory that everybody can enter, as an administrator or a package makes it.
    fn open_directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        directory
    }

    async fn store(directory: &Path) -> Store {
        let store = Store::connect(&format!("sqlite://{}/sweeper.db?mode=rwc", directory.display())).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    fn modes(directory: &Path) -> [u32; 3] {
        FILES.map(|name| fs::metadata(directory.join(name)).unwrap().permissions().mode() & 0o7777)
    }

    #[tokio::test]
    async fn a_database_in_a_directory_that_others_can_enter_is_its_owners_alone() {
        let directory = open_directory();
        let _store = store(directory.path()).await;
        assert_eq!(modes(directory.path()), [0o600; 3]);
    }

    #[tokio::test]
    async fn a_database_that_others_could_read_is_narrowed_once_it_is_opened() {
        let directory = open_directory();
        let first = store(directory.path()).await;
        for name in FILES {
            fs::set_permissions(directory.path().join(name), Permissions::from_mode(0o664)).unwrap();
        }
        let second = store(directory.path()).await;
        assert_eq!(modes(directory.path()), [0o600; 3]);
        // What the first one has open is the same file.
        first.put_setting("a", "b").await.unwrap();
        assert_eq!(second.setting("a").await.unwrap().as_deref(), Some("b"));
    }

    #[tokio::test]
    async fn a_database_behind_a_link_is_narrowed_and_one_that_is_not_to_be_made_is_not_made() {
        let (directory, elsewhere) = (open_directory(), open_directory());
        drop(store(elsewhere.path()).await);
        fs::set_permissions(elsewhere.path().join("sweeper.db"), Permissions::from_mode(0o644)).unwrap();
        symlink(elsewhere.path().join("sweeper.db"), directory.path().join("sweeper.db")).unwrap();
        let _store = store(directory.path()).await;
        let mode = fs::metadata(elsewhere.path().join("sweeper.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let missing = directory.path().join("missing.db");
        for mode in ["?mode=rw", "?mode=ro", ""] {
            Store::connect(&format!("sqlite://{}{mode}", missing.display())).await.unwrap_err();
            assert!(!missing.exists(), "{mode}");
        }
    }
}
