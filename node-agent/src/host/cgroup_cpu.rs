//! The CPU counters that the kernel keeps for each cgroup: `cpuacct.usage` (version 1) or `cpu.stat` (version 2, in every cgroup, also where the cpu
//! controller is off). <https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files>
//!
//! On a host with both trees it is version 1's: its root has an exact counter. Each sample opens one small file.

use crate::{
    procfs::cgroups::{Mounts, visible_name},
    workload::residue::{Sample, Samples, Total},
};
use node_agent_ebpf::hierarchy;
use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const ROOT: &str = "/";
/// The root of every tree has this id. What is mounted inside a container shows another one.
const ROOT_ID: u64 = 1;
/// `cpu.stat` is a dozen lines; its first one is what is wanted.
const MAX_BYTES: usize = 512;

/// A tree whose cgroups have counters of CPU time.
#[derive(Clone, Debug)]
pub struct CpuTree {
    root: PathBuf,
    hierarchy: u8,
}

impl CpuTree {
    /// The tree that is mounted.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn find(mounts: &Mounts) -> Result<Self, &'static str> {
        let trees = [hierarchy::V1_CPUACCT, hierarchy::V2];
        let found = trees.into_iter().find_map(|tree| Some((tree, mounts.of(tree)?)));
        let (hierarchy, root) = found.ok_or("no cgroup tree with counters of CPU time is mounted")?;
        match fs::metadata(root) {
            Ok(metadata) if metadata.ino() == ROOT_ID => Ok(Self { root: root.to_owned(), hierarchy }),
            _ => Err("what is mounted is not the host's whole tree of cgroups"),
        }
    }

    /// Which tree it is.
    #[must_use]
    pub const fn hierarchy(&self) -> u8 {
        self.hierarchy
    }

    /// What its total is.
    #[must_use]
    pub const fn total(&self) -> Total {
        if self.hierarchy == hierarchy::V2 { Total::TopLevel } else { Total::Root }
    }

    /// These cgroups now, as far as they are there.
    #[must_use]
    pub fn sample<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Samples {
        let sample = |path: &str| self.sample_of(&self.root.join(path.trim_start_matches('/')));
        paths.filter_map(|path| Some((path.to_owned(), sample(path)?))).collect()
    }

    /// The same without those that the total rests on.
    #[must_use]
    pub fn sample_parts<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Samples {
        self.sample(paths.filter(|path| !self.is_of_total(path)))
    }

    /// Those that the total rests on: version 1's root, version 2's cgroups right below it, also new ones.
    #[must_use]
    pub fn sample_total(&self) -> Samples {
        if self.total() == Total::Root {
            return self.sample(std::iter::once(ROOT));
        }
        let entries = fs::read_dir(&self.root).into_iter().flatten().filter_map(Result::ok);
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let sample = |entry: fs::DirEntry| {
            let path = format!("/{}", visible_name(&entry.file_name()));
            Some((path, self.sample_of(&entry.path())?))
        };
        directories.filter_map(sample).collect()
    }

    fn is_of_total(&self, path: &str) -> bool {
        match self.total() {
            Total::Root => path == ROOT,
            Total::TopLevel => path != ROOT && path.rfind('/') == Some(0),
        }
    }

    fn sample_of(&self, directory: &Path) -> Option<Sample> {
        // Of an id and a counter that are not one cgroup's, the id is the older: the next sample finds another one.
        let metadata = fs::metadata(directory).ok()?;
        let mut text = [0; MAX_BYTES];
        let file = if self.hierarchy == hierarchy::V2 { "cpu.stat" } else { "cpuacct.usage" };
        let length = File::open(directory.join(file)).ok()?.read(&mut text).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let usage_ns = if self.hierarchy == hierarchy::V2 {
            let usage_us = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
            usage_us.parse::<u64>().ok()?.checked_mul(1_000)?
        } else {
            text.trim_ascii_end().parse().ok()?
        };
        // A directory has two links, and one more for each below it.
        Some(Sample { id: metadata.ino(), usage_ns, has_children: metadata.nlink() > 2 })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn tree(root: &Path, hierarchy: u8) -> CpuTree {
        CpuTree { root: root.to_owned(), hierarchy }
    }

    #[test]
    fn a_counter_is_read_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a/cpu.stat"), "usage_usec 1234\nuser_usec 1000\n").unwrap();
        fs::write(root.path().join("a/cpuacct.usage"), "77\n").unwrap();
        let usage = |hierarchy| {
            let samples = tree(root.path(), hierarchy).sample(["/", "/a", "/a/b", "/gone"].into_iter());
            samples.into_iter().map(|(path, sample)| (path, sample.usage_ns, sample.has_children)).collect::<Vec<_>>()
        };
        assert_eq!(usage(hierarchy::V2), [("/a".to_owned(), 1_234_000, true)]);
        assert_eq!(usage(hierarchy::V1_CPUACCT), [("/a".to_owned(), 77, true)]);
        let split = |hierarchy| {
            let tree = tree(root.path(), hierarchy);
            let parts = tree.sample_parts(["/", "/a", "/gone"].into_iter());
            [tree.sample_total(), parts].map(|samples| samples.into_keys().collect::<Vec<_>>())
        };
        assert_eq!(split(hierarchy::V2), [vec!["/a"], vec![]], "the total is those right below the root");
        fs::write(root.path().join("cpuacct.usage"), "99\n").unwrap();
        assert_eq!(split(hierarchy::V1_CPUACCT), [vec!["/"], vec!["/a"]], "the total is the root's");
    }

    #[test]
    fn this_hosts_own_tree_is_found() {
        let tree = CpuTree::find(&Mounts::read()).unwrap();
        let root = tree.sample(["/"].into_iter());
        assert!(root["/"].usage_ns > 0 && root["/"].id == ROOT_ID);
        assert!(CpuTree::find(&Mounts::default()).is_err());
    }
}
