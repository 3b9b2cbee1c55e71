//! The files that packages installed, by inode and by path, and whether they still hold what their package says.
//!
//! Each database ([`dpkg`], [`rpm`]) says path and digest of every file; what they say is kept and checked here. Only executables, units
//! and cron's files are kept, about 150 bytes each. What a database said before it failed is forgotten.

mod digest;
mod dpkg;
mod header;
mod rpm;
mod snaps;
mod tree;

use crate::coverage::Status;
use digest::Digest;
use node_agent_ebpf::Executable;
use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tree::{Stamp, Tree};

/// Folders in which executables lie; what lies elsewhere is documentation, data or configuration.
const EXECUTABLES: [&str; 10] = [
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/libexec/",
    "/usr/lib/",
    "/lib/",
    "/usr/lib64/",
    "/lib64/",
    "/opt/",
];
/// Endings that executables never have, though the files often may be executed.
const NO_EXECUTABLES: [&str; 6] = [".py", ".pl", ".sh", ".ko", ".h", ".a"];
/// Folders of units.
const UNITS: [&str; 2] = ["/lib/systemd/system/", "/usr/lib/systemd/system/"];
/// Beginnings of the paths of cron's tables and jobs.
const CRON: [&str; 2] = ["/etc/cron", "/etc/anacrontab"];
/// Most files that are kept of each kind: a workstation has some 8,000.
const MAX_FILES: usize = 65_536;
/// Most executables whose origin is remembered. Beyond, all are looked up again.
const MAX_KNOWN: usize = 8_192;
/// Larger files are not hashed, and so nobody's.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// Why a database is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: Status,
    pub(super) reason: String,
}

impl Refusal {
    fn new(status: Status, reason: String) -> Self {
        Self { status, reason }
    }

    fn of_io(whose: &str, error: &io::Error) -> Self {
        Self::new(Status::of_io(error), format!("{whose} database cannot be read: {error}"))
    }

    fn unsupported(reason: String) -> Self {
        Self::new(Status::Unsupported, reason)
    }
}

/// Who says what a file held.
#[derive(Clone, Debug)]
enum Source {
    /// A package, by the digest of its content.
    Digest(Digest),
    /// A package of dpkg's of this name, in a file of its own.
    Sums(Arc<str>),
    /// A rule, or the publisher of a snap, vouches for whatever lies there.
    Place,
}

/// What a file is kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Executable,
    /// A unit, a drop-in of one, or a file of cron's.
    Text,
}

fn kind(path: &str) -> Option<Kind> {
    let is_unit = UNITS.iter().filter_map(|folder| path.strip_prefix(folder)).any(|unit| match unit.split_once('/') {
        None => true,
        Some((folder, name)) => folder.ends_with(".d") && name.ends_with(".conf") && !name.contains('/'),
    });
    if is_unit || CRON.iter().any(|start| path.starts_with(start)) {
        return Some(Kind::Text);
    }
    let may_be_executable = EXECUTABLES.iter().any(|folder| path.starts_with(folder))
        && !NO_EXECUTABLES.iter().any(|ending| path.ends_with(ending))
        && !path.rsplit('/').next().is_some_and(|name| name.contains(".so"));
    may_be_executable.then_some(Kind::Executable)
}

#[derive(Clone, Copy, Debug)]
enum Database {
    Dpkg,
    Rpm,
}

impl Database {
    const ALL: [Self; 2] = [Self::Dpkg, Self::Rpm];

    /// Says each file; false if there is no such database.
    fn read(self, tree: &Tree, take: &mut dyn FnMut(&str, Source)) -> Result<bool, Refusal> {
        match self {
            Self::Dpkg => dpkg::read(tree, take),
            Self::Rpm => rpm::read(tree, take),
        }
    }

    /// What changes when packages come and go.
    fn stamps(self, tree: &Tree) -> Vec<Stamp> {
        match self {
            Self::Dpkg => dpkg::stamps(tree),
            Self::Rpm => rpm::stamps(tree),
        }
    }
}

/// An executable.
#[derive(Debug)]
struct Listed {
    path: String,
    inode: u64,
    source: Source,
}

/// What databases, rules and mounts say.
#[derive(Debug, Default)]
struct Index {
    files: Vec<Listed>,
    texts: HashMap<String, Source>,
}

impl Index {
    /// Keeps a file if it is of a kind that matters.
    fn take(&mut self, tree: &Tree, path: &str, source: Source) {
        match kind(path) {
            Some(Kind::Executable) => self.list(tree, path, source),
            Some(Kind::Text) if self.texts.len() < MAX_FILES => {
                self.texts.insert(path.to_owned(), source);
            }
            _ => {}
        }
    }

    /// Keeps a file if it can be executed.
    fn list(&mut self, tree: &Tree, path: &str, source: Source) {
        if self.files.len() >= MAX_FILES {
            return;
        }
        // A package's link leads to a file that is listed by its own name, perhaps by another package.
        let metadata = match source {
            Source::Digest(_) | Source::Sums(_) => fs::symlink_metadata(tree.on_disk(path)),
            Source::Place => fs::metadata(tree.on_disk(path)),
        };
        if let Ok(metadata) = metadata.as_ref()
            && metadata.is_file()
            && metadata.mode() & 0o111 != 0
        {
            self.files.push(Listed { path: path.to_owned(), inode: metadata.ino(), source });
        }
    }
}

/// The files that were installed.
#[derive(Debug)]
pub(super) struct Packages {
    tree: Tree,
    index: Index,
    by_inode: HashMap<u64, Vec<usize>>,
    stamps: Vec<Stamp>,
    refusal: Option<Refusal>,
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

impl Packages {
    /// Reads the databases below `root`, and looks at the files that rules vouch for.
    pub(super) fn read(root: &Path, vouched: &BTreeSet<String>) -> Self {
        Self::read_owned_by(root, vouched, 0)
    }

    pub(super) fn read_owned_by(root: &Path, vouched: &BTreeSet<String>, owner: u32) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let tree = Tree::new(root, owner, &mounts);
        let mut index = Index::default();
        let stamps = stamps(&tree);
        let mut is_there = false;
        let mut refusals = Vec::new();
        for database in Database::ALL {
            let mut said = Index::default();
            match database.read(&tree, &mut |path, source| said.take(&tree, path, source)) {
                Ok(false) => {}
                Ok(true) => {
                    is_there = true;
                    index.files.extend(said.files);
                    index.texts.extend(said.texts);
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        // Where one is read, another of a format that is not says nothing new: a tool of another distribution brought it.
        refusals.retain(|refusal| !is_there || refusal.status != Status::Unsupported);
        if !is_there && refusals.is_empty() {
            let reason = "there is no database of dpkg's or rpm's: nothing but this agent is housekeeping";
            refusals.push(Refusal::unsupported(reason.to_owned()));
        }
        for path in vouched.iter().chain(&snaps::daemons(&tree, &mounts)) {
            index.list(&tree, path, Source::Place);
        }
        let mut by_inode: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, listed) in index.files.iter().enumerate() {
            by_inode.entry(listed.inode).or_default().push(number);
        }
        Self { tree, index, by_inode, stamps, refusal: refusals.into_iter().next(), known: HashMap::new() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.tree.root
    }

    /// Why packages are not known, or not all of them; `None` if they are.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Whether packages came or went since the databases were read.
    pub(super) fn has_changed(&self) -> bool {
        stamps(&self.tree) != self.stamps
    }

    pub(super) fn on_disk(&self, path: &str) -> PathBuf {
        self.tree.on_disk(path)
    }

    /// See [`super::Shipped::locate`].
    pub(super) fn locate(&mut self, executable: &Executable) -> Option<&str> {
        let listed = self.known(executable).listed?;
        self.index.files.get(listed).map(|listed| listed.path.as_str())
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
            fs::metadata(&path).is_ok_and(|metadata| self.tree.is_at(wanted, &path, &metadata))
        };
        let candidates = self.by_inode.get(&wanted.inode)?;
        candidates.iter().copied().find(|index| self.index.files.get(*index).is_some_and(fits))
    }

    /// See [`super::Shipped::is_own`].
    pub(super) fn is_own(&mut self, executable: &Executable) -> bool {
        let known = self.known(executable);
        if let Some(is_own) = known.is_own {
            return is_own;
        }
        let is_own = match known.listed.and_then(|listed| self.index.files.get(listed)) {
            Some(Listed { path, source: Source::Place, .. }) => self.tree.guarded(path).is_ok(),
            Some(Listed { path, source, .. }) => {
                self.digest(path, source).is_some_and(|digest| self.is_unchanged(path, digest, Some(executable)))
            }
            None => false,
        };
        self.known.insert(*executable, Known { is_own: Some(is_own), ..known });
        is_own
    }

    /// Whether the unit, drop-in or file of cron's at this path is a package's, unchanged. Where `/lib` leads to `/usr/lib`, a package may
    /// know it by either name.
    pub(super) fn is_own_text(&self, path: &str) -> bool {
        let other = match path.strip_prefix("/usr/lib/") {
            Some(rest) => Some(format!("/lib/{rest}")),
            None => path.strip_prefix("/lib/").map(|rest| format!("/usr/lib/{rest}")),
        };
        [Some(path), other.as_deref()].into_iter().flatten().any(|listed| {
            let source = self.index.texts.get(listed);
            let digest = source.and_then(|source| self.digest(listed, source));
            digest.is_some_and(|digest| self.is_unchanged(path, digest, None))
        })
    }

    /// What the package says that the file held.
    fn digest(&self, listed: &str, source: &Source) -> Option<Digest> {
        match source {
            Source::Digest(digest) => Some(*digest),
            Source::Sums(package) => dpkg::digest(&self.tree, package, listed),
            Source::Place => None,
        }
    }

    /// Whether the file at this path has this digest, and nobody but its owner could change that; if it is asked for an executable, whether
    /// it still is that one.
    fn is_unchanged(&self, path: &str, digest: Digest, wanted: Option<&Executable>) -> bool {
        let Ok(path) = self.tree.guarded(path) else { return false };
        let fits = || -> io::Result<bool> {
            let file = File::open(&path)?;
            let metadata = file.metadata()?;
            let is_wanted = wanted.is_none_or(|wanted| self.tree.is_at(wanted, &path, &metadata));
            if !is_wanted || !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
                return Ok(false);
            }
            digest.fits(file.take(MAX_FILE_BYTES))
        };
        fits().unwrap_or(false)
    }
}

/// What changes when packages come and go, whoever installs them.
fn stamps(tree: &Tree) -> Vec<Stamp> {
    Database::ALL.iter().flat_map(|database| database.stamps(tree)).chain(snaps::stamps(tree)).collect()
}

#[cfg(test)]
mod tests;
