//! Rules files on disk: read within bounds, kept whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};
use workload_rules::MAX_FILE_BYTES;

/// By which a change of a file is seen: one that was never looked at differs from one that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Nobody has looked.
    #[default]
    Unseen,
    /// It is not there.
    Missing,
    /// Inode, size, when its content changed, and when anything about it did: a `chmod` makes a file readable and changes the latter alone.
    Seen(u64, u64, (i64, i64), (i64, i64)),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Self {
        fs::metadata(path).map_or(Self::Missing, |metadata| {
            let content = (metadata.mtime(), metadata.mtime_nsec());
            Self::Seen(metadata.ino(), metadata.size(), content, (metadata.ctime(), metadata.ctime_nsec()))
        })
    }
}

/// The file, or as much of it as shows that it is too long.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The kept file; one that cannot be read is as good as none, and the log says so.
pub(super) fn read_if_there(path: &Path) -> Option<Vec<u8>> {
    match read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "the kept rules cannot be read; they will be fetched again");
            None
        }
    }
}

/// Writes it whole under another name first, so that no start ever finds half a file.
pub(super) fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

pub(super) fn forget(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(file = %path.display(), %error, "the sweeper's earlier rules stay on disk");
    }
}
