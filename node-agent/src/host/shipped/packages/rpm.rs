//! rpm's database as rpm 4.16 and later keep it: an SQLite file with one header per package (RHEL 9 and 10, Amazon Linux 2023, Fedora).
//!
//! It is read as it lies there (`immutable=1`): no lock that a transaction of rpm's would have to wait for, and nothing written beside it.
//! That is consistent only as long as nobody writes, so it is refused while rpm's write-ahead log or rollback journal holds anything, and if
//! the file changed while it was read. Berkeley DB (Amazon Linux 2, RHEL 8) and ndb (SUSE) are named and not read.
//!
//! Bounds: 10 s, headers of 8 MiB (one at a time; the largest of a workstation has some 3 MiB), 256 KiB of pages.

use super::{
    Kind, Refusal, Source,
    digest::Digest,
    header, kind,
    tree::{Stamp, Tree},
};
use crate::coverage::Status;
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{
    fmt::Write as _,
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    time::{Duration, Instant},
};

/// Where rpm keeps its database today, and where it kept it.
const FOLDERS: [&str; 2] = ["/usr/lib/sysimage/rpm", "/var/lib/rpm"];
const DATABASE: &str = "rpmdb.sqlite";
/// Where SQLite keeps what has not reached the file yet, or has to be undone in it.
const UNFINISHED: [&str; 2] = ["rpmdb.sqlite-wal", "rpmdb.sqlite-journal"];
/// Files of other formats: <https://github.com/rpm-software-management/rpm/tree/rpm-4.18.x/lib/backend>.
const NOT_READ: [(&str, &str); 2] = [("Packages", "Berkeley DB"), ("Packages.db", "ndb")];

const MAX_HEADER_BYTES: i32 = 8 << 20;
const MAX_TIME: Duration = Duration::from_secs(10);
/// Steps of SQLite's virtual machine between two checks of the time; a row takes some ten.
const STEPS: i32 = 1_000;

const S_IFMT: u16 = 0o170_000;
const S_IFREG: u16 = 0o100_000;

pub(super) fn stamps(tree: &Tree) -> Vec<Stamp> {
    let files = FOLDERS
        .map(|folder| [DATABASE, UNFINISHED[0], UNFINISHED[1]].map(|file| tree.stamp(&format!("{folder}/{file}"))));
    files.concat()
}

/// Says each file; false if rpm is not used here.
pub(super) fn read(tree: &Tree, take: &mut dyn FnMut(&str, Source)) -> Result<bool, Refusal> {
    let has = |folder: &str, file: &str| fs::symlink_metadata(tree.on_disk(&format!("{folder}/{file}"))).is_ok();
    let Some(folder) = FOLDERS.into_iter().find(|folder| has(folder, DATABASE)) else {
        let other = NOT_READ.into_iter().find(|(file, _)| FOLDERS.iter().any(|folder| has(folder, file)));
        return other.map_or(Ok(false), |(_, format)| {
            Err(Refusal::unsupported(format!(
                "rpm's database is one of {format}, which is not read: nothing but this agent is housekeeping"
            )))
        });
    };
    let before = stamps(tree);
    for file in UNFINISHED {
        if tree.stamp(&format!("{folder}/{file}")).is_some_and(|(_, length, ..)| length > 0) {
            return Err(unsettled(&format!("{file} is not empty")));
        }
    }
    let database = tree.guarded(&format!("{folder}/{DATABASE}")).and_then(|path| {
        // Opened once to learn why that fails: SQLite does not say.
        let is_file = File::open(&path)?.metadata()?.is_file();
        is_file.then_some(path).ok_or_else(|| io::Error::other("it is no file"))
    });
    let database = database.map_err(|error| Refusal::of_io("rpm's", &error))?;
    let answer = read_headers(&database, MAX_TIME, take);
    if stamps(tree) != before {
        return Err(unsettled("it changed while it was read"));
    }
    match answer {
        Ok(()) => Ok(true),
        Err(error) => Err(Refusal::new(Status::Broken, format!("rpm's database cannot be read: {error}"))),
    }
}

fn unsettled(what: &str) -> Refusal {
    Refusal::new(
        Status::Broken,
        format!("a transaction of rpm's is under way, or was never ended ({what}): it is read after that"),
    )
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("it takes longer than {} s", MAX_TIME.as_secs())]
    Late,
    #[error("none of its {0} packages has a header of the format that is known")]
    Unknown(usize),
}

fn read_headers(database: &Path, within: Duration, take: &mut dyn FnMut(&str, Source)) -> Result<(), Failure> {
    let deadline = Instant::now() + within;
    let late = |error| if Instant::now() >= deadline { Failure::Late } else { Failure::Sqlite(error) };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable(database), flags)?;
    // What SQLite advises for files that one did not write: https://www.sqlite.org/security.html
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA cache_size = -256; PRAGMA mmap_size = 0")?;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= deadline))?;
    // Neither type nor length of a column takes reading its content; the length of a text would be that up to its first zero byte.
    let mut statement = connection
        .prepare("SELECT CASE WHEN typeof(blob) = 'blob' AND length(blob) <= ?1 THEN blob END FROM Packages")?;
    let mut rows = statement.query([MAX_HEADER_BYTES])?;
    let (mut headers, mut unknown) = (0_usize, 0_usize);
    while let Some(row) = rows.next().map_err(late)? {
        headers += 1;
        match row.get_ref(0)?.as_blob().ok().and_then(header::files) {
            Some(files) => take_files(files, take),
            None => unknown += 1,
        }
        if Instant::now() >= deadline {
            return Err(Failure::Late);
        }
    }
    // One that is broken or too large is left out. If all are, the format is another one.
    if headers > 0 && unknown == headers {
        return Err(Failure::Unknown(headers));
    }
    Ok(())
}

fn take_files(files: header::Files<'_>, take: &mut dyn FnMut(&str, Source)) {
    let algorithm = files.algorithm;
    let mut path = Vec::new();
    for file in files {
        path.clear();
        path.extend_from_slice(file.folder);
        path.extend_from_slice(file.name);
        let Ok(path) = std::str::from_utf8(&path) else { continue };
        let may_be_executed = file.mode & 0o111 != 0;
        let is_wanted = file.mode & S_IFMT == S_IFREG
            && match kind(path) {
                Some(Kind::Executable) => may_be_executed,
                Some(Kind::Text) => true,
                None => false,
            };
        if is_wanted && let Some(digest) = Digest::of_rpm(algorithm, file.digest) {
            take(path, Source::Digest(digest));
        }
    }
}

/// The URI of a database that nobody writes: <https://www.sqlite.org/uri.html>.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(*byte)),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri + "?mode=ro&immutable=1"
}

#[cfg(test)]
#[path = "rpm_tests.rs"]
mod tests;
