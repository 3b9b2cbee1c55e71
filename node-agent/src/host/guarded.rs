//! Which of the host's files nobody but their owner can change.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Where a path of the host, whose files lie below `root`, leads to, if nobody but `owner` may change what lies there or move something else into
/// its place.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if nothing is there, and [`io::ErrorKind::PermissionDenied`] if it is not the owner's alone.
pub(super) fn guarded(root: &Path, path: &str, owner: u32) -> io::Result<PathBuf> {
    let found = fs::canonicalize(root.join(path.trim_start_matches('/')))?;
    let root = fs::canonicalize(root)?;
    let is_owners = |part: &Path| {
        fs::symlink_metadata(part).is_ok_and(|metadata| metadata.uid() == owner && metadata.mode() & 0o022 == 0)
    };
    let is_guarded =
        found.starts_with(&root) && found.ancestors().take_while(|part| part.starts_with(&root)).all(is_owners);
    is_guarded.then_some(found).ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, "others may change it"))
}
