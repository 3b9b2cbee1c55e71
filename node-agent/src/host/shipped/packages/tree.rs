//! The host's files, and which of them nobody but their owner can change.

use crate::{
    host::guarded::guarded,
    procfs::process::{executable_of, kernel_device},
};
use node_agent_ebpf::Executable;
use rustix::fs::makedev;
use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The files below the host's root.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Who must own files and folders.
    owner: u32,
    /// Mount points and their devices, as the kernel writes them.
    devices: Vec<(PathBuf, u32)>,
}

/// What changes whenever a file does: inode, length, and time of change; `None` if it cannot be looked at.
pub(super) type Stamp = Option<(u64, u64, i64, i64)>;

impl Tree {
    /// The files below `root`, which belong to `owner`; `mountinfo` is `/proc/self/mountinfo`.
    pub(super) fn new(root: &Path, owner: u32, mountinfo: &str) -> Self {
        Self { root: root.to_owned(), owner, devices: devices(mountinfo) }
    }

    pub(super) fn on_disk(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(super) fn stamp(&self, path: &str) -> Stamp {
        let metadata = fs::metadata(self.on_disk(path)).ok()?;
        Some((metadata.ino(), metadata.len(), metadata.ctime(), metadata.ctime_nsec()))
    }

    /// Where this path leads to, if nobody but the owner may change what lies there or move something else into its place.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if nothing is there, and [`io::ErrorKind::PermissionDenied`] if it is not the owner's alone.
    pub(super) fn guarded(&self, path: &str) -> io::Result<PathBuf> {
        guarded(&self.root, path, self.owner)
    }

    /// Whether the file at this path is the one that the kernel means. A file system with several devices (btrfs) tells another number in
    /// stat(2) than the kernel and its list of mounts do.
    pub(super) fn is_at(&self, wanted: &Executable, path: &Path, metadata: &Metadata) -> bool {
        let found = executable_of(metadata);
        let mounted = self.devices.iter().rfind(|(point, _)| path.starts_with(point)).map(|(_, device)| *device);
        let is_device = found.device == wanted.device || mounted == Some(wanted.device);
        is_device && found.inode == wanted.inode && found.changed_ns == wanted.changed_ns
    }
}

/// Mount points with the device of what is mounted there, the later ones of equal length behind the earlier ones.
pub(super) fn devices(mountinfo: &str) -> Vec<(PathBuf, u32)> {
    let mut mounts: Vec<(PathBuf, u32)> = mountinfo
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(2);
            let (major, minor) = fields.next()?.split_once(':')?;
            let device = kernel_device(makedev(major.parse().ok()?, minor.parse().ok()?));
            // mountinfo writes a space as \040.
            Some((PathBuf::from(fields.nth(1)?.replace("\\040", " ")), device))
        })
        .collect();
    mounts.sort_by_key(|(point, _)| point.components().count());
    mounts
}
