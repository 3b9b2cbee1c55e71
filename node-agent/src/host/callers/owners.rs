//! Which process holds a listening socket: its inode is looked for in `/proc/PID/fd`.
//!
//! Needs `CAP_SYS_PTRACE` for processes of others. Found once, an owner is looked for again after [`KEEP_READINGS`], and kept if the
//! right to look has gone by then. Cost: one link of
//! `/proc/PID/fd` takes 5 µs; a reading looks at [`MAX_LINKS`] of them at most and goes on from there at the next
//! one, and at the first [`MAX_LINKS_PER_PROCESS`] of one process: a server opens its listeners before its connections.

use crate::{
    host::process::{self, Identity},
    workload::{Class, Traits},
};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::Path,
};

/// Links that one reading looks at, at most: 25 ms.
const MAX_LINKS: usize = 5_000;
/// Links of one process that are looked at.
const MAX_LINKS_PER_PROCESS: usize = 1_024;
/// An owner is looked for again after so many readings, found or not: programs replace themselves, and rules change.
const KEEP_READINGS: u32 = 60;

/// Who holds a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Executable name, fit for a terminal.
    pub(super) command: String,
    /// Whose work it is.
    pub(super) class: Class,
}

/// Owners that are known, by inode.
#[derive(Debug)]
pub(super) struct Owners {
    known: HashMap<u64, (Option<Owner>, u32)>,
    max_links: usize,
    max_links_per_process: usize,
    /// Where the next walk begins.
    next: u32,
    /// How many processes have been looked at since the last one that was not found began to be looked for.
    walked: usize,
    /// Some process would not show its descriptors.
    pub(super) denied: bool,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            max_links: MAX_LINKS,
            max_links_per_process: MAX_LINKS_PER_PROCESS,
            next: 0,
            walked: 0,
            denied: false,
        }
    }
}

impl Owners {
    /// Looks for the owners of these inodes, and forgets all others.
    pub(super) fn refresh(&mut self, proc: &Path, wanted: &HashSet<u64>, classify: &dyn Fn(&Traits<'_>) -> Class) {
        self.known.retain(|inode, (_, age)| {
            *age += 1;
            wanted.contains(inode)
        });
        let is_missing = |inode: &&u64| self.known.get(inode).is_none_or(|(_, age)| *age > KEEP_READINGS);
        let mut missing: HashSet<u64> = wanted.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            self.walked = 0;
            return;
        }
        let mut pids = process::list(proc).unwrap_or_default();
        // Process 1 may hold a socket for the service that it started: the service is asked first.
        pids.sort_unstable_by_key(|pid| (*pid == 1, *pid));
        let turn = pids.iter().position(|pid| *pid >= self.next).unwrap_or(0);
        pids.rotate_left(turn);
        let mut links = 0;
        if self.walked == 0 {
            self.denied = false;
        }
        for pid in &pids {
            if missing.is_empty() || links >= self.max_links {
                self.next = *pid;
                break;
            }
            self.walked += 1;
            let found = match held(proc, *pid, self.max_links_per_process, &missing, &mut links) {
                Ok(found) => found,
                Err(error) => {
                    self.denied |= error.kind() == io::ErrorKind::PermissionDenied;
                    continue;
                }
            };
            let owner = if found.is_empty() { None } else { owner(proc, *pid, classify) };
            for inode in found {
                missing.remove(&inode);
                self.known.insert(inode, (owner.clone(), 0));
            }
        }
        if self.walked >= pids.len() {
            // Everybody has been asked: the kernel itself holds it, or somebody whom we may not ask.
            for inode in missing {
                let known = self.known.entry(inode).or_default();
                *known = (known.0.take().filter(|_| self.denied), 0);
            }
            self.walked = 0;
        }
    }

    /// Who holds this socket, as far as known.
    pub(super) fn of(&self, inode: u64) -> Option<&Owner> {
        self.known.get(&inode)?.0.as_ref()
    }
}

/// Which of the missing inodes this process has open.
fn held(proc: &Path, pid: u32, most: usize, missing: &HashSet<u64>, links: &mut usize) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc.join(pid.to_string()).join("fd"))?.take(most) {
        *links += 1;
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        found.extend(inode.filter(|inode| missing.contains(inode)));
    }
    Ok(found)
}

fn owner(proc: &Path, pid: u32, classify: &dyn Fn(&Traits<'_>) -> Class) -> Option<Owner> {
    let identity = Identity::read(proc, pid).ok()?;
    let class = classify(&Traits {
        name: &identity.name,
        parent: &identity.parent,
        uid: identity.uid,
        is_kernel_thread: false,
        is_own: pid == std::process::id(),
        cgroup_path: identity.cgroup_path.as_deref(),
    });
    Some(Owner { command: identity.name, class })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn classify(process: &Traits<'_>) -> Class {
        crate::workload::classify(&workload_rules::built_in().housekeeping, process)
    }

    fn process(proc: &Path, pid: u32, name: &str, inodes: &[u64]) {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(dir.join("fd")).unwrap();
        fs::write(dir.join("stat"), format!("{pid} ({name}) S 1 1 1 0 -1\n")).unwrap();
        fs::write(dir.join("status"), "Uid:\t0\t0\t0\t0\n").unwrap();
        fs::write(dir.join("cgroup"), "0::/\n").unwrap();
        for (fd, inode) in inodes.iter().enumerate() {
            symlink(format!("socket:[{inode}]"), dir.join("fd").join(fd.to_string())).unwrap();
        }
        symlink("/dev/null", dir.join("fd/9")).unwrap();
    }

    #[test]
    fn the_service_is_named_and_not_the_process_that_keeps_its_socket() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 1, "systemd", &[5, 6]);
        process(proc.path(), 30, "sshd", &[6]);
        process(proc.path(), 31, "python3", &[7]);
        let mut owners = Owners::default();
        owners.refresh(proc.path(), &HashSet::from([5, 6, 7, 8]), &classify);
        let name = |owners: &Owners, inode| owners.of(inode).map(|owner| (owner.command.clone(), owner.class));
        assert_eq!(name(&owners, 5), Some(("systemd".into(), Class::Housekeeping)));
        assert_eq!(name(&owners, 6), Some(("sshd".into(), Class::Housekeeping)));
        assert_eq!(name(&owners, 7), Some(("python3".into(), Class::Workload)));
        assert_eq!(name(&owners, 8), None);
        // What is known is not looked for again, and what nobody wants is forgotten.
        fs::remove_dir_all(proc.path().join("31")).unwrap();
        owners.refresh(proc.path(), &HashSet::from([7]), &classify);
        assert_eq!(name(&owners, 7), Some(("python3".into(), Class::Workload)));
        assert_eq!(owners.known.len(), 1);
    }

    #[test]
    fn a_long_walk_goes_on_at_the_next_reading() {
        let proc = tempfile::tempdir().unwrap();
        for pid in 2..12 {
            process(proc.path(), pid, "x", &[]);
            for fd in 10..20 {
                symlink("/dev/null", proc.path().join(format!("{pid}/fd/{fd}"))).unwrap();
            }
        }
        process(proc.path(), 20, "server", &[77]);
        let mut owners = Owners { max_links: 20, max_links_per_process: 5, ..Owners::default() };
        let readings = (1..=5).find(|_| {
            owners.refresh(proc.path(), &HashSet::from([77]), &classify);
            owners.of(77).is_some()
        });
        assert_eq!(readings, Some(3), "4 processes of 5 links in each reading");
    }
}
