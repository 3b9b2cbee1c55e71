//! Names and files of the spool; no policy.
//!
//! `DIRECTORY/NODE/ORDER-BOOT/SEQUENCE.heartbeat` waits; `SEQUENCE.assigned` remembers the last sequence that was given away
//! when its heartbeat has gone; `DIRECTORY/set-aside/` keeps what cannot be sent. A file appears by `rename`, so a name that
//! exists has its whole contents, as long as the kernel lives.

use super::{MAX_SEQUENCE, record};
use heartbeat::{BootId, NodeId};
use std::{
    fs, io,
    io::Read as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

const BLOCK_BYTES: u64 = 4096;
const SET_ASIDE: &str = "set-aside";
const KEPT_ASIDE: usize = 16;
/// What is set aside is for a person to look at: the first part of each file will do.
const KEPT_ASIDE_BYTES: u64 = 256 * 1024;

pub(super) fn in_blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES).max(1).saturating_mul(BLOCK_BYTES)
}

pub(super) struct Disk {
    directory: PathBuf,
    node: PathBuf,
}

pub(super) struct BootDir {
    pub(super) order: u64,
    pub(super) boot: BootId,
    path: PathBuf,
    /// The one `assigned` file, so that no directory has to be listed to remove it.
    marker: Option<u64>,
}

pub(super) struct Record {
    pub(super) sequence: u64,
    pub(super) bytes: u64,
    pub(super) written: SystemTime,
}

#[derive(Default)]
pub(super) struct Listed {
    pub(super) records: Vec<Record>,
    pub(super) last_sequence: Option<u64>,
}

fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The disk is there and takes nothing: that passes, and until then memory has to do.
fn takes_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | ReadOnlyFilesystem | QuotaExceeded)
}

fn names(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(path) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
            Ok(names.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl Disk {
    pub(super) fn open(directory: &Path, node: &NodeId) -> io::Result<Self> {
        let own = node.to_string();
        // Each write makes its directory again, so a disk that takes nothing now may be as good as any in a minute.
        match make_private(&directory.join(&own)) {
            Err(error) if takes_nothing(&error) => {}
            made => made?,
        }
        for name in names(directory)?.into_iter().filter(|name| *name != own && name.parse::<NodeId>().is_ok()) {
            tracing::warn!(
                node = name,
                "the spool holds heartbeats of another node, as a copied disk does; they are removed"
            );
            remove_if_possible(&directory.join(name));
        }
        Ok(Self { directory: directory.to_owned(), node: directory.join(own) })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn boot_dir(&self, order: u64, boot: BootId) -> BootDir {
        BootDir { order, boot, path: self.node.join(format!("{order:08}-{boot}")), marker: None }
    }

    /// Oldest first.
    pub(super) fn boots(&self) -> io::Result<Vec<BootDir>> {
        let parsed = names(&self.node)?.into_iter().filter_map(|name| {
            let (order, boot) = name.split_once('-')?;
            let dir = self.boot_dir(order.parse().ok()?, boot.parse().ok()?);
            // Only names as they are written here, and no order that leaves no room for a next one.
            (dir.path.ends_with(&name) && dir.path.is_dir() && dir.order < MAX_SEQUENCE).then_some(dir)
        });
        let mut boots = parsed.collect::<Vec<_>>();
        boots.sort_by_key(|dir| dir.order);
        // Nobody but a person with `cp` makes two directories for one boot: the later one counts.
        let later = |at: usize| boots[at + 1..].iter().any(|dir| dir.boot == boots[at].boot);
        let doubled = (0..boots.len()).filter(|at| later(*at)).map(|at| boots[at].order).collect::<Vec<_>>();
        boots.retain(|dir| !doubled.contains(&dir.order));
        Ok(boots)
    }

    /// Moves a record out of the queue and keeps the newest few of those.
    pub(super) fn set_aside(&self, boot: &BootDir, sequence: u64, why: &str) -> io::Result<()> {
        let aside = self.directory.join(SET_ASIDE);
        make_private(&aside)?;
        let kept = aside.join(format!("{:08}-{}-{sequence:020}.{why}", boot.order, boot.boot));
        match fs::rename(boot.file(sequence), &kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let _ = remove(&boot.file(sequence));
                return Err(error);
            }
            Ok(()) => {
                if let Ok(metadata) = fs::symlink_metadata(&kept)
                    && metadata.is_file()
                    && metadata.len() > KEPT_ASIDE_BYTES
                {
                    fs::OpenOptions::new().write(true).open(&kept)?.set_len(KEPT_ASIDE_BYTES)?;
                }
            }
        }
        let mut all = names(&aside)?;
        all.sort();
        for name in &all[..all.len().saturating_sub(KEPT_ASIDE)] {
            remove(&aside.join(name))?;
        }
        Ok(())
    }
}

/// A directory may stand where a file should.
fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn remove_if_possible(path: &Path) {
    if let Err(error) = remove(path) {
        tracing::warn!(%error, path = %path.display(), "what the spool does not need stays on disk");
    }
}

impl BootDir {
    fn file(&self, sequence: u64) -> PathBuf {
        self.path.join(format!("{sequence:020}.heartbeat"))
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn mark_file(&self, sequence: u64) -> PathBuf {
        self.path.join(format!("{sequence:020}.assigned"))
    }

    /// Names and sizes; half-written files of a killed process, foreign files and all marks but the highest are removed, if the
    /// disk lets them: one that stays does no harm.
    pub(super) fn list(&mut self) -> io::Result<Listed> {
        let mut listed = Listed::default();
        for name in names(&self.path)? {
            let path = self.path.join(&name);
            let (stem, kind) = name.split_once('.').unwrap_or_default();
            let sequence = stem.parse::<u64>().unwrap_or_default();
            // A name that this module would not have written names no record, and no sequence that was given away.
            let kind = if stem == format!("{sequence:020}") && sequence <= MAX_SEQUENCE { kind } else { "" };
            match kind {
                "heartbeat" => {
                    let metadata = fs::symlink_metadata(&path)?;
                    let written = metadata.modified()?;
                    listed.records.push(Record { sequence, bytes: in_blocks(metadata.len()), written });
                }
                "assigned" => {
                    let lower = self.marker.map_or(sequence, |known| known.min(sequence));
                    if self.marker.replace(self.marker.map_or(sequence, |known| known.max(sequence))).is_some() {
                        remove_if_possible(&self.mark_file(lower));
                    }
                }
                _ => {
                    remove_if_possible(&path);
                    continue;
                }
            }
            listed.last_sequence = listed.last_sequence.max(Some(sequence));
        }
        Ok(listed)
    }

    pub(super) fn write(&mut self, sequence: u64, record: &[u8]) -> io::Result<()> {
        self.place(&self.file(sequence), record)?;
        if self.marker.is_some_and(|marked| marked <= sequence) {
            self.remove_marker();
        }
        Ok(())
    }

    /// Remembers that everything up to `sequence` was given away.
    pub(super) fn mark(&mut self, sequence: u64) -> io::Result<()> {
        self.place(&self.mark_file(sequence), &[])?;
        if self.marker != Some(sequence) {
            self.remove_marker();
        }
        self.marker = Some(sequence);
        Ok(())
    }

    pub(super) fn rename_to_mark(&mut self, sequence: u64) -> io::Result<()> {
        fs::rename(self.file(sequence), self.mark_file(sequence))?;
        self.remove_marker();
        self.marker = Some(sequence);
        Ok(())
    }

    /// One that stays by mistake does no harm: the highest name counts.
    pub(super) fn remove_marker(&mut self) {
        if let Some(sequence) = self.marker.take() {
            let _ = fs::remove_file(self.mark_file(sequence));
        }
    }

    fn place(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        make_private(&self.path)?;
        let new = path.with_extension("new");
        let placed = fs::write(&new, contents).and_then(|()| fs::rename(&new, path));
        if placed.is_err() {
            let _ = fs::remove_file(&new);
        }
        placed
    }

    /// At most one byte more than the longest record; from nothing but a file, so that no sample waits.
    pub(super) fn read(&self, sequence: u64) -> io::Result<Vec<u8>> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(self.file(sequence))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let limit = u64::try_from(record::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn unlink(&self, sequence: u64) -> io::Result<()> {
        fs::remove_file(self.file(sequence))
    }

    /// Of a boot that is over and of which nothing waits.
    pub(super) fn remove(&mut self) {
        self.remove_marker();
        if let Err(error) = fs::remove_dir(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, path = %self.path.display(), "an empty boot directory stays");
        }
    }
}
