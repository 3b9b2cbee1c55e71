//! Cgroup paths as the host has them, for an agent in a cgroup namespace of its own (a container's, unless its runtime was told otherwise).
//!
//! In such a namespace the kernel writes every path from the namespace's root on: another pod's is `/../../podUID/ID`, and what both have in common is left out:
//! cgroup_namespaces(7). So the agent looks for itself, once, in the host's own tree, which a volume brings in; from where it finds itself it resolves all other
//! paths. Where there is no such tree, paths stay as the kernel writes them, and what lies outside is work like all that nobody knows.
//!
//! Cost: nothing in the host's own namespace; elsewhere one small file for each cgroup of the host, once.

use super::cgroups::{Mounts, places};
use node_agent_ebpf::hierarchy;
use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// Where the link of a process in the host's own cgroup namespace leads (`PROC_CGROUP_INIT_INO`):
/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/proc_ns.h#L47>
const HOSTS: &str = "cgroup:[4026531835]";
/// Cgroups that are looked at for this process, at most.
const MAX_CGROUPS: usize = 100_000;

/// Where the namespace's root lies in the host's trees: the unified one, and the one of version 1 that names workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    roots: [Option<String>; 2],
}

static OWN: LazyLock<Namespace> = LazyLock::new(|| Namespace::find(Path::new("/proc"), &Mounts::read()));

/// What `/proc/PID/cgroup` says, by the host's paths: see [`places`].
#[must_use]
pub fn host_places(text: &str) -> [String; 2] {
    OWN.absolute(places(text))
}

impl Namespace {
    fn find(proc: &Path, mounts: &Mounts) -> Self {
        if fs::read_link(proc.join("self/ns/cgroup")).map_or(true, |link| link == Path::new(HOSTS)) {
            return Self::default();
        }
        let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        let pid = std::process::id().to_string();
        let root = |mount: Option<&Path>, seen: &str| {
            let absolute = find_process(mount?, &pid)?;
            let root = if seen == "/" { Some(absolute.as_str()) } else { absolute.strip_suffix(seen) };
            root.map(str::to_owned)
        };
        let [unified, v1] = places(&own);
        let v1_mount = mounts.of(hierarchy::V1_CPUACCT).or_else(|| mounts.of(hierarchy::V1_PIDS));
        Self { roots: [root(mounts.of(hierarchy::V2), unified), root(v1_mount, v1)] }
    }

    fn absolute(&self, [unified, v1]: [&str; 2]) -> [String; 2] {
        let of = |root: &Option<String>, path: &str| {
            root.as_ref().map_or_else(|| path.to_owned(), |root| resolved(root, path))
        };
        [of(&self.roots[0], unified), of(&self.roots[1], v1)]
    }
}

/// The path of the cgroup that holds a process, below the root of its tree.
fn find_process(mount: &Path, pid: &str) -> Option<String> {
    let mut queue: VecDeque<PathBuf> = [mount.to_owned()].into();
    for _ in 0..MAX_CGROUPS {
        let folder = queue.pop_front()?;
        if fs::read_to_string(folder.join("cgroup.procs")).is_ok_and(|pids| pids.lines().any(|line| line == pid)) {
            let path = folder.strip_prefix(mount).ok()?.to_str()?;
            return Some(format!("/{path}"));
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        queue.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    None
}

fn resolved(root: &str, path: &str) -> String {
    let mut parts = Vec::new();
    for part in root.split('/').chain(path.split('/')).filter(|part| !part.is_empty()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_resolved_from_where_the_agent_stands() {
        const ROOT: &str =
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podA.slice/cri-containerd-1.scope";
        for (seen, expected) in [
            ("/", ROOT),
            ("/inner", &format!("{ROOT}/inner")),
            ("/../cri-containerd-2.scope", &ROOT.replace("-1.scope", "-2.scope")),
            (
                "/../../../kubepods-podB.slice/cri-containerd-3.scope",
                "/kubepods.slice/kubepods-podB.slice/cri-containerd-3.scope",
            ),
            ("/../../../../system.slice/chrony.service", "/system.slice/chrony.service"),
            ("/../../../..", "/"),
            ("/../../../../../../x", "/x"),
        ] {
            assert_eq!(resolved(ROOT, seen), expected, "{seen}");
        }
    }

    #[test]
    fn the_agent_finds_itself_in_the_hosts_tree_and_without_one_paths_stay_as_they_are() {
        let host = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        for (cgroup, pids) in
            [("system.slice/a.service", "1\n"), ("kubepods/podA/1", &format!("7\n{pid}\n")), ("kubepods/podB/2", "")]
        {
            fs::create_dir_all(host.path().join("tree").join(cgroup)).unwrap();
            fs::write(host.path().join("tree").join(cgroup).join("cgroup.procs"), pids).unwrap();
        }
        let own = host.path().join("proc/self/ns");
        fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink("cgroup:[4026532999]", own.join("cgroup")).unwrap();
        fs::write(host.path().join("proc/self/cgroup"), "0::/\n").unwrap();
        let mounts = |point: &str| {
            let line = format!("30 24 0:26 /../../.. {point} rw - cgroup2 cgroup2 rw\n");
            Mounts::parse(&line, |_| true)
        };
        let found = Namespace::find(&host.path().join("proc"), &mounts(host.path().join("tree").to_str().unwrap()));
        assert_eq!(found.absolute(["/../../podB/2", "/"]), ["/kubepods/podB/2", "/"]);
        let lost = Namespace::find(&host.path().join("proc"), &mounts("/nowhere"));
        assert_eq!(lost.absolute(["/../../podB/2", "/"]), ["/../../podB/2", "/"]);
        fs::remove_file(own.join("cgroup")).unwrap();
        std::os::unix::fs::symlink(HOSTS, own.join("cgroup")).unwrap();
        assert_eq!(Namespace::find(&host.path().join("proc"), &mounts("/nowhere")), Namespace::default());
    }
}
