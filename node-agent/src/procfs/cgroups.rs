//! Paths of cgroups by their kernel ids.
//!
//! A cgroup's id is the inode number of its directory. The programs in the kernel remember names from the start of a
//! program on; for what ran before, an id that is not known leads to one walk of its tree, at most one per
//! tree and sample; known paths are kept while they are in use.

use heartbeat::text::visible_bytes;
use node_agent_ebpf::hierarchy;
use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirEntryExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

/// Directories that one walk looks at, at most: beyond that, what is missing stays without a path.
const MAX_DIRECTORIES: usize = 100_000;
/// That of a tree's root.
const ROOT_INODE: u64 = 1;

/// Where the trees are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    v2: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
}

impl Mounts {
    /// Reads `/proc/self/mountinfo`. The first mount of a tree counts; a mount of a part of a tree is passed over.
    ///
    /// In a cgroup namespace the kernel writes `/` for the part that the container is in, and `/../..` for the whole tree. The whole one is told by its inode,
    /// which is 1: <https://github.com/torvalds/linux/blob/v6.12/fs/kernfs/dir.c> (`kernfs_create_root`).
    #[must_use]
    pub fn read() -> Self {
        let is_whole = |point: &Path| id_of(point).is_ok_and(|inode| inode == ROOT_INODE);
        fs::read_to_string("/proc/self/mountinfo").map(|text| Self::parse(&text, is_whole)).unwrap_or_default()
    }

    pub(super) fn parse(mountinfo: &str, is_whole: impl Fn(&Path) -> bool) -> Self {
        let mut mounts = Self::default();
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let left: Vec<&str> = left.split(' ').collect();
            let right: Vec<&str> = right.split(' ').collect();
            let (Some(&root), Some(&point), Some(&kind), Some(&options)) =
                (left.get(3), left.get(4), right.first(), right.get(2))
            else {
                continue;
            };
            // mountinfo writes a space as \040.
            let point = PathBuf::from(point.replace("\\040", " "));
            if (root != "/" && !root.starts_with("/..")) || !kind.starts_with("cgroup") || !is_whole(&point) {
                continue;
            }
            let has = |controller| kind == "cgroup" && options.split(',').any(|option| option == controller);
            let Mounts { v2, cpuacct, pids, cpu, memory } = &mut mounts;
            let slots = [(has("cpuacct"), cpuacct), (has("pids"), pids), (has("cpu"), cpu), (has("memory"), memory)];
            for (_, slot) in [(kind == "cgroup2", v2)].into_iter().chain(slots).filter(|(is_there, _)| *is_there) {
                slot.get_or_insert_with(|| point.clone());
            }
        }
        mounts
    }

    /// Where a tree is mounted.
    #[must_use]
    pub fn of(&self, tree: u8) -> Option<&Path> {
        match tree {
            hierarchy::V2 => self.v2.as_deref(),
            hierarchy::V1_CPUACCT => self.cpuacct.as_deref(),
            hierarchy::V1_PIDS => self.pids.as_deref(),
            _ => None,
        }
    }

    /// Where the unified tree is mounted.
    #[must_use]
    pub fn v2(&self) -> Option<&Path> {
        self.v2.as_deref()
    }

    /// Where version 1's tree with the cpu controller is mounted.
    #[must_use]
    pub fn v1_cpu(&self) -> Option<&Path> {
        self.cpu.as_deref()
    }

    /// Where version 1's tree with the memory controller is mounted.
    #[must_use]
    pub fn v1_memory(&self) -> Option<&Path> {
        self.memory.as_deref()
    }

    /// Whether the unified tree is the only one that matters here.
    #[must_use]
    pub fn is_only_v2(&self) -> bool {
        self.v2.is_some() && self.cpuacct.is_none() && self.pids.is_none()
    }

    /// Whether `cpuacct` has a version 1 tree.
    #[must_use]
    pub fn has_cpuacct(&self) -> bool {
        self.cpuacct.is_some()
    }

    /// Whether `pids` has a version 1 tree.
    #[must_use]
    pub fn has_pids(&self) -> bool {
        self.pids.is_some()
    }

    /// Whether any tree is mounted.
    #[must_use]
    pub fn any(&self) -> bool {
        self.v2.is_some() || self.cpuacct.is_some() || self.pids.is_some()
    }
}

/// What `/proc/PID/cgroup` says: the path in the unified tree, and the one in the version 1 tree that names workloads. `/` is
/// the root, and stands for a tree that is not there.
#[must_use]
pub fn places(text: &str) -> [&str; 2] {
    let path = |wanted: &str| {
        text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_wanted = controllers.split(',').any(|controller| controller == wanted);
            (path != "/" && is_wanted).then_some(path)
        })
    };
    [path("").unwrap_or("/"), path("cpuacct").or_else(|| path("pids")).unwrap_or("/")]
}

/// Paths that are known.
#[derive(Debug, Default)]
pub struct Cgroups {
    mounts: Mounts,
    paths: HashMap<(u8, u64), String>,
}

impl Cgroups {
    /// Knows the mounts and no path yet.
    #[must_use]
    pub fn new(mounts: Mounts) -> Self {
        Self { mounts, paths: HashMap::new() }
    }

    /// Whether any tree is mounted.
    #[must_use]
    pub fn any(&self) -> bool {
        self.mounts.any()
    }

    /// Where the trees are mounted.
    #[must_use]
    pub fn mounts(&self) -> &Mounts {
        &self.mounts
    }

    /// Brings the known paths up to date for these cgroups, and forgets those that nobody uses. `remembered` is asked
    /// first: it knows cgroups that are gone by now.
    pub fn refresh(&mut self, wanted: &HashSet<(u8, u64)>, remembered: impl Fn(u8, u64) -> Option<String>) {
        self.keep(wanted);
        self.learn(wanted, remembered);
    }

    /// Forgets all others.
    pub fn keep(&mut self, wanted: &HashSet<(u8, u64)>) {
        self.paths.retain(|known, _| wanted.contains(known));
    }

    /// Learns the paths of these cgroups. `remembered` is asked first: it knows cgroups that are gone by now.
    pub fn learn(&mut self, wanted: &HashSet<(u8, u64)>, remembered: impl Fn(u8, u64) -> Option<String>) {
        for (tree, id) in wanted {
            if let (false, Some(path)) = (self.paths.contains_key(&(*tree, *id)), remembered(*tree, *id)) {
                self.paths.insert((*tree, *id), path);
            }
        }
        for tree in [hierarchy::V2, hierarchy::V1_CPUACCT, hierarchy::V1_PIDS] {
            let missing: HashSet<u64> = wanted
                .iter()
                .filter(|(of, id)| *of == tree && !self.paths.contains_key(&(tree, *id)))
                .map(|(_, id)| *id)
                .collect();
            if let (false, Some(root)) = (missing.is_empty(), self.mounts.of(tree)) {
                for (id, path) in walk(root, missing) {
                    self.paths.insert((tree, id), path);
                }
            }
        }
    }

    /// The path of a cgroup where its tree is the only one: elsewhere its processes may be known by another one.
    #[must_use]
    pub fn only_path(&self, tree: u8, id: u64) -> Option<&str> {
        if self.mounts.is_only_v2() { self.path(tree, id) } else { None }
    }

    /// The path of a cgroup; `None` if it is gone or its tree is not mounted.
    #[must_use]
    pub fn path(&self, tree: u8, id: u64) -> Option<&str> {
        if tree == hierarchy::ROOT { Some("/") } else { self.paths.get(&(tree, id)).map(String::as_str) }
    }
}

/// A directory's name as paths have it: what is no text or hidden is escaped.
#[must_use]
pub fn visible_name(name: &std::ffi::OsStr) -> String {
    visible_bytes(name.as_bytes())
}

fn walk(root: &Path, mut missing: HashSet<u64>) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut queue = std::collections::VecDeque::from([(root.to_owned(), String::new())]);
    let mut seen = 0;
    while let (Some((dir, path)), false) = (queue.pop_front(), missing.is_empty()) {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.filter_map(Result::ok) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || seen >= MAX_DIRECTORIES {
                continue;
            }
            seen += 1;
            let path = format!("{path}/{}", visible_name(&entry.file_name()));
            let id = entry.ino();
            if missing.remove(&id) {
                found.push((id, path.clone()));
            }
            queue.push_back((entry.path(), path));
        }
    }
    found
}

/// The kernel's id of the cgroup at this directory.
///
/// # Errors
/// If it cannot be looked at.
pub fn id_of(directory: &Path) -> std::io::Result<u64> {
    fs::metadata(directory).map(|metadata| metadata.ino())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_hybrid_host_are_found() {
        let mounts = Mounts::parse(
            "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
             32 24 0:28 /part /elsewhere rw - cgroup cgroup rw,pids\n\
             33 24 0:29 / /sys/fs/cgroup/with\\040space rw - cgroup cgroup rw,pids\n",
            |_| true,
        );
        assert_eq!(mounts.of(hierarchy::V2), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mounts.of(hierarchy::V1_CPUACCT), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(mounts.of(hierarchy::V1_PIDS), Some(Path::new("/sys/fs/cgroup/with space")));
        assert_eq!(mounts.v1_cpu(), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(mounts.v1_memory(), None);
    }

    #[test]
    fn inside_a_namespace_the_whole_tree_is_told_from_the_containers_part() {
        let mountinfo = "40 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n\
                         41 24 0:26 /../../.. /host/sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let mounts = Mounts::parse(mountinfo, |point| point.starts_with("/host"));
        assert_eq!(mounts.of(hierarchy::V2), Some(Path::new("/host/sys/fs/cgroup")));
        assert_eq!(Mounts::parse(mountinfo, |_| false), Mounts::default());
        assert!(Mounts::read().any(), "this host's own tree is whole");
    }

    #[test]
    fn a_directory_is_found_by_its_inode_and_forgotten_when_nobody_asks() {
        let root = tempfile::tempdir().unwrap();
        let unit = root.path().join("system.slice/cron.service");
        fs::create_dir_all(&unit).unwrap();
        let id = id_of(&unit).unwrap();
        let mut cgroups = Cgroups::new(Mounts { v2: Some(root.path().to_owned()), ..Mounts::default() });
        cgroups.refresh(&HashSet::from([(hierarchy::V2, id), (hierarchy::V2, u64::MAX)]), |_, _| None);
        assert_eq!(cgroups.path(hierarchy::V2, id), Some("/system.slice/cron.service"));
        assert_eq!(cgroups.path(hierarchy::V2, u64::MAX), None);
        assert_eq!(cgroups.path(hierarchy::ROOT, 0), Some("/"));
        cgroups.refresh(&HashSet::new(), |_, _| None);
        assert_eq!(cgroups.path(hierarchy::V2, id), None);
    }

    #[test]
    fn a_process_stands_in_the_unified_tree_and_in_the_version_1_tree_that_names_workloads() {
        for (text, expected) in [
            ("0::/system.slice/cron.service\n", ["/system.slice/cron.service", "/"]),
            ("3:cpu,cpuacct:/docker/1\n2:pids:/x\n0::/\n", ["/", "/docker/1"]),
            ("3:cpu,cpuacct:/\n2:pids:/x\n0::/y\n", ["/y", "/x"]),
            ("4:memory:/m\n2:pids:/a:b.service\n0::/\n", ["/", "/a:b.service"]),
            ("1:name=systemd:/z\n", ["/", "/"]),
            ("", ["/", "/"]),
        ] {
            assert_eq!(places(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cgroup_that_is_gone_keeps_the_path_that_somebody_remembers() {
        let mut cgroups = Cgroups::new(Mounts::default());
        cgroups.refresh(&HashSet::from([(hierarchy::V2, 7)]), |_, id| (id == 7).then(|| "/gone".to_owned()));
        assert_eq!(cgroups.path(hierarchy::V2, 7), Some("/gone"));
    }
}
