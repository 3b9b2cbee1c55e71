//! dpkg's database: which files it installed, and what their content was.
//!
//! Format: <https://wiki.debian.org/Teams/Dpkg/Spec/MetadataFormats> (`info/PACKAGE.list`, `info/PACKAGE.md5sums`, and the conffiles of
//! `status`). Only executables and units are kept, about 100 bytes each.

use crate::coverage::Status;
use md5::{Digest as _, Md5};
use node_agent_ebpf::Executable;
use rustix::fs::{major, makedev, minor};
use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File, Metadata},
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const DATABASE: &str = "var/lib/dpkg/info";
const STATUS: &str = "var/lib/dpkg/status";
/// Folders in which executables lie; what lies elsewhere is documentation, data or configuration.
const EXECUTABLES: [&str; 8] =
    ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/libexec/", "/usr/lib/", "/lib/", "/opt/"];
/// Endings that executables never have, though the files often may be executed.
const NO_EXECUTABLES: [&str; 6] = [".py", ".pl", ".sh", ".ko", ".h", ".a"];
/// Folders of units.
const UNITS: [&str; 2] = ["/lib/systemd/system/", "/usr/lib/systemd/system/"];
/// Most files that are kept: a workstation has some 8,000.
const MAX_FILES: usize = 65_536;
/// Most executables whose origin is remembered. Beyond, all are looked up again.
const MAX_KNOWN: usize = 8_192;
/// Larger files are not hashed, and so nobody's.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// Who says that a file is the system's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A package, by its number.
    Package(usize),
    /// A rule.
    Rules,
}

#[derive(Debug)]
struct Listed {
    path: String,
    source: Source,
}

/// The files that were installed.
#[derive(Debug)]
pub(super) struct Packages {
    root: PathBuf,
    /// Who must own files and folders.
    owner: u32,
    names: Vec<String>,
    files: Vec<Listed>,
    by_inode: HashMap<u64, Vec<usize>>,
    units: HashMap<String, usize>,
    conffiles: HashMap<String, String>,
    /// Mount points and their devices, as the kernel writes them.
    devices: Vec<(PathBuf, u32)>,
    changed: Option<(i64, i64)>,
    failure: Option<(Status, String)>,
    known: HashMap<Executable, Known>,
}

/// What is known of one executable.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its place in the list of files.
    listed: Option<usize>,
    /// Whether it is the system's own; `None` as long as nobody asked.
    is_own: Option<bool>,
}

fn when_changed(of: &Metadata) -> (i64, i64) {
    (of.ctime(), of.ctime_nsec())
}

/// The kernel's own form of a device number.
fn kernel_device(device: u64) -> u32 {
    (major(device) << 20) | minor(device)
}

/// What the kernel says of the file that this is the metadata of.
pub(in crate::host) fn executable(of: &Metadata) -> Executable {
    let (s, ns) = when_changed(of);
    let changed_ns = s.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(ns.cast_unsigned());
    Executable { inode: of.ino(), changed_ns, device: kernel_device(of.dev()), padding: 0 }
}

fn may_be_executable(path: &str) -> bool {
    EXECUTABLES.iter().any(|folder| path.starts_with(folder))
        && !NO_EXECUTABLES.iter().any(|ending| path.ends_with(ending))
        && !path.rsplit('/').next().is_some_and(|name| name.contains(".so"))
}

impl Packages {
    /// Reads the database below `root`, and looks at the files that rules vouch for.
    pub(super) fn read(root: &Path, vouched: &BTreeSet<String>) -> Self {
        Self::read_owned_by(root, vouched, 0)
    }

    pub(super) fn read_owned_by(root: &Path, vouched: &BTreeSet<String>, owner: u32) -> Self {
        let mut packages = Self {
            root: root.to_owned(),
            owner,
            names: Vec::new(),
            files: Vec::new(),
            by_inode: HashMap::new(),
            units: HashMap::new(),
            conffiles: HashMap::new(),
            devices: devices(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()),
            changed: fs::metadata(root.join(DATABASE)).ok().as_ref().map(when_changed),
            failure: None,
            known: HashMap::new(),
        };
        if let Err(error) = packages.read_lists().and_then(|()| packages.read_conffiles()) {
            packages.failure = Some(match error.kind() {
                io::ErrorKind::NotFound => {
                    let reason = "there is no database of dpkg's: nothing but this agent is housekeeping";
                    (Status::Unsupported, reason.to_owned())
                }
                _ => (Status::of_io(&error), format!("dpkg's database cannot be read: {error}")),
            });
        }
        for path in vouched {
            packages.list(path, Source::Rules);
        }
        packages
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Why nothing is known of packages; `None` if they are known.
    pub(super) fn refusal(&self) -> Option<(Status, String)> {
        self.failure.clone()
    }

    /// Whether packages came or went since the database was read.
    pub(super) fn has_changed(&self) -> bool {
        fs::metadata(self.root.join(DATABASE)).ok().as_ref().map(when_changed) != self.changed
    }

    fn read_lists(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(DATABASE))? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else { continue };
            let number = self.names.len();
            self.names.push(package.to_owned());
            for line in fs::read_to_string(entry.path())?.lines() {
                if let Some(unit) = UNITS.iter().find_map(|folder| line.strip_prefix(folder))
                    && !unit.contains('/')
                {
                    self.units.insert(line.to_owned(), number);
                } else if may_be_executable(line) {
                    self.list(line, Source::Package(number));
                }
            }
        }
        Ok(())
    }

    /// Keeps a file if it is one that can be executed.
    fn list(&mut self, path: &str, source: Source) {
        // A package's link leads to a file that is listed by its own name, perhaps by another package.
        let Ok(metadata) = (match source {
            Source::Package(_) => fs::symlink_metadata(self.on_disk(path)),
            Source::Rules => fs::metadata(self.on_disk(path)),
        }) else {
            return;
        };
        if !metadata.is_file() || metadata.mode() & 0o111 == 0 || self.files.len() >= MAX_FILES {
            return;
        }
        self.by_inode.entry(metadata.ino()).or_default().push(self.files.len());
        self.files.push(Listed { path: path.to_owned(), source });
    }

    /// cron's tables and jobs, which are configuration: their digests stand in `status`.
    fn read_conffiles(&mut self) -> io::Result<()> {
        for line in BufReader::new(File::open(self.root.join(STATUS))?).split(b'\n') {
            let line = line?;
            let Some(line) = line.strip_prefix(b" /etc/").and_then(|line| std::str::from_utf8(line).ok()) else {
                continue;
            };
            let mut words = line.split(' ');
            if let (Some(path), Some(digest)) = (words.next(), words.next())
                && (path.starts_with("cron") || path == "anacrontab")
            {
                self.conffiles.insert(format!("/etc/{path}"), digest.to_owned());
            }
        }
        Ok(())
    }

    pub(super) fn on_disk(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// See [`super::Shipped::locate`].
    pub(super) fn locate(&mut self, executable: &Executable) -> Option<&str> {
        let listed = self.known(executable).listed?;
        self.files.get(listed).map(|listed| listed.path.as_str())
    }

    fn known(&mut self, executable: &Executable) -> Known {
        if let Some(known) = self.known.get(executable) {
            return *known;
        }
        let known = Known { listed: self.find(executable), is_own: None };
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(*executable, known);
        known
    }

    fn find(&self, wanted: &Executable) -> Option<usize> {
        let fits = |listed: &Listed| {
            let Ok(path) = fs::canonicalize(self.on_disk(&listed.path)) else { return false };
            fs::metadata(&path).is_ok_and(|metadata| self.is_at(wanted, &path, &metadata))
        };
        let candidates = self.by_inode.get(&wanted.inode)?;
        candidates.iter().copied().find(|index| self.files.get(*index).is_some_and(fits))
    }

    /// Whether the file at this path is the one that the kernel means. A file system with several devices (btrfs) tells another number in
    /// stat(2) than the kernel and its list of mounts do.
    fn is_at(&self, wanted: &Executable, path: &Path, metadata: &Metadata) -> bool {
        let found = executable(metadata);
        let mounted = self.devices.iter().rfind(|(point, _)| path.starts_with(point)).map(|(_, device)| *device);
        let is_device = found.device == wanted.device || mounted == Some(wanted.device);
        is_device && found.inode == wanted.inode && found.changed_ns == wanted.changed_ns
    }

    /// See [`super::Shipped::is_own`].
    pub(super) fn is_own(&mut self, executable: &Executable) -> bool {
        let known = self.known(executable);
        if let Some(is_own) = known.is_own {
            return is_own;
        }
        let is_own = match known.listed.and_then(|listed| self.files.get(listed)) {
            Some(Listed { path, source: Source::Package(package) }) => {
                self.digest(*package, path).is_some_and(|digest| self.has_digest(path, &digest, Some(executable)))
            }
            Some(Listed { path, source: Source::Rules }) => {
                fs::canonicalize(self.on_disk(path)).is_ok_and(|path| self.is_guarded(&path))
            }
            None => false,
        };
        self.known.insert(*executable, Known { is_own: Some(is_own), ..known });
        is_own
    }

    /// Whether the unit of this path is a package's, unchanged.
    pub(super) fn is_own_unit(&self, path: &str) -> bool {
        let digest = self.units.get(path).and_then(|package| self.digest(*package, path));
        digest.is_some_and(|digest| self.has_digest(path, &digest, None))
    }

    /// Whether this file of cron's is a package's, unchanged.
    pub(super) fn is_own_conffile(&self, path: &str) -> bool {
        self.conffiles.get(path).is_some_and(|digest| self.has_digest(path, digest, None))
    }

    /// What the package says that the file held.
    fn digest(&self, package: usize, path: &str) -> Option<String> {
        let sums = self.root.join(DATABASE).join(format!("{}.md5sums", self.names.get(package)?));
        let text = fs::read_to_string(sums).ok()?;
        let wanted = path.strip_prefix('/')?;
        text.lines().find_map(|line| {
            let (digest, name) = line.split_once("  ")?;
            (name == wanted).then(|| digest.to_owned())
        })
    }

    /// Whether the file holds what the digest says, and nobody but its owner could change that; if it is asked for an executable, whether it still is that one.
    fn has_digest(&self, path: &str, digest: &str, wanted: Option<&Executable>) -> bool {
        let Ok(path) = fs::canonicalize(self.on_disk(path)) else { return false };
        let hash = || -> io::Result<bool> {
            let file = File::open(&path)?;
            let metadata = file.metadata()?;
            let is_wanted = wanted.is_none_or(|wanted| self.is_at(wanted, &path, &metadata));
            if !is_wanted || !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
                return Ok(false);
            }
            let mut hash = Md5::new();
            io::copy(&mut file.take(MAX_FILE_BYTES), &mut hash)?;
            Ok(hex::encode(hash.finalize()) == digest)
        };
        self.is_guarded(&path) && hash().unwrap_or(false)
    }

    /// Whether nobody but the owner may change the file or move another one into its place.
    fn is_guarded(&self, path: &Path) -> bool {
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        path.starts_with(&root)
            && path.ancestors().take_while(|part| part.starts_with(&root)).all(|part| {
                fs::symlink_metadata(part)
                    .is_ok_and(|metadata| metadata.uid() == self.owner && metadata.mode() & 0o022 == 0)
            })
    }
}

/// Mount points with the device of what is mounted there, the later ones of equal length behind the earlier ones.
fn devices(mountinfo: &str) -> Vec<(PathBuf, u32)> {
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

#[cfg(test)]
#[path = "packages_tests.rs"]
mod tests;
