//! Which process holds a socket: its inode is searched for in `/proc/PID/fd`.
//!
//! Needs `CAP_SYS_PTRACE` for processes of others. Found once, an owner is searched for again after [`KEEP_SAMPLES`], and kept if the
//! right to search has gone by then. A socket that no process has, although every process showed all that it has open, is the
//! kernel's own (a file server, a tunnel); a descriptor that is only on its way between two processes, or only in a ring of
//! `io_uring`, passes for that, too.
//!
//! Cost: one link of `/proc/PID/fd` takes 5 µs; a sample reads [`MAX_LINKS`] of them at most and goes on from there at the next one,
//! and the first [`MAX_LINKS_PER_PROCESS`] of one process: a server opens its listeners before its connections. The first sample, which
//! alone may still have the right, reads [`MAX_LINKS_AT_FIRST`]. Who is known to hold a socket is asked first.

use crate::{
    host::whose::{InCgroup, Role, Whose},
    procfs::process::{self, Identity},
    workload::Class,
};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::Path,
};

/// Links that one sample reads, at most: 25 ms.
const MAX_LINKS: usize = 5_000;
/// Links that the first sample reads, at most: half a second, once.
const MAX_LINKS_AT_FIRST: usize = 100_000;
/// Links of one process that are read.
const MAX_LINKS_PER_PROCESS: usize = 1_024;
/// An owner is searched for again after so many samples, found or not: programs replace themselves, and rules change.
const KEEP_SAMPLES: u32 = 60;

/// Where a socket was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// The kernel's id of the cgroup in the unified tree.
    pub(super) cgroup: u64,
    /// What it is to them.
    pub(super) role: Role,
}

/// Who holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Executable name, fit for a terminal.
    pub(super) command: String,
    /// Whose work it is.
    pub(super) class: Class,
    /// Its process id; 0 if only its cgroup is known. Process 1 may keep a socket for the service that it starts.
    pub(super) pid: u32,
    /// The path of the cgroup that it runs in; `None` if that could not be read.
    pub(super) cgroup: Option<String>,
}

/// What is known of a socket's holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Holder {
    /// A process.
    Process(Owner),
    /// No process: the kernel itself.
    Kernel,
    /// It has not been found, and somebody did not show everything.
    #[default]
    Unknown,
}

/// Holders that are known, by inode.
#[derive(Debug)]
pub(super) struct Owners {
    known: HashMap<u64, (Holder, u32)>,
    /// By the cgroup that opened them, for those whose holder is not found.
    by_cgroup: HashMap<u64, Holder>,
    /// Paths of the cgroups in which those were opened whose holder is still not found, and whether this machine opened the connection.
    opened_in: HashMap<u64, (String, bool)>,
    /// Links that the next sample may read.
    may_read: usize,
    max_links: usize,
    max_links_per_process: usize,
    /// Where the next walk begins.
    next: u32,
    /// How many processes have been looked at since the last one that was not found began to be looked for.
    walked: usize,
    /// Some process would not show its descriptors.
    pub(super) denied: bool,
    /// Some process has more of them than are read, or did not show what one of them is.
    cut_short: bool,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            by_cgroup: HashMap::new(),
            opened_in: HashMap::new(),
            may_read: MAX_LINKS_AT_FIRST,
            max_links: MAX_LINKS,
            max_links_per_process: MAX_LINKS_PER_PROCESS,
            next: 0,
            walked: 0,
            denied: false,
            cut_short: false,
        }
    }
}

impl Owners {
    /// Searches for the holders of these inodes, and forgets all others.
    pub(super) fn refresh(&mut self, proc: &Path, wanted: &HashSet<u64>, classify: &mut Whose<'_>) {
        let may_read = std::mem::replace(&mut self.may_read, self.max_links);
        self.known.retain(|inode, (_, age)| {
            *age += 1;
            wanted.contains(inode)
        });
        let is_missing = |inode: &&u64| self.known.get(inode).is_none_or(|(_, age)| *age > KEEP_SAMPLES);
        let mut missing: HashSet<u64> = wanted.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            self.walked = 0;
            return;
        }
        if self.walked == 0 {
            (self.denied, self.cut_short) = (false, false);
        }
        let pids = self.in_turn(process::list(proc).unwrap_or_default());
        let mut links = 0;
        for pid in &pids {
            if missing.is_empty() || links >= may_read {
                self.next = *pid;
                break;
            }
            self.walked += 1;
            let found = match held(proc, *pid, self.max_links_per_process, &missing, &mut links) {
                Ok(Shown { found, is_whole, denied }) => {
                    self.cut_short |= !is_whole;
                    self.denied |= denied;
                    found
                }
                Err(error) => {
                    self.denied |= error.kind() == io::ErrorKind::PermissionDenied;
                    continue;
                }
            };
            let owner = if found.is_empty() { None } else { owner(proc, *pid, classify) };
            for inode in found {
                missing.remove(&inode);
                self.known.insert(inode, (owner.clone().map_or(Holder::Unknown, Holder::Process), 0));
            }
        }
        if self.walked >= pids.len() {
            let is_whole = !self.denied && !self.cut_short;
            for inode in missing {
                let (before, _) = self.known.remove(&inode).unwrap_or_default();
                // Where not everything is shown, what was known stays.
                self.known.insert(inode, (if is_whole { Holder::Kernel } else { before }, 0));
            }
            self.walked = 0;
        }
    }

    /// Who holds sockets already is asked first, then all others from where the last search ended; process 1 is the last of its round,
    /// because it may keep a socket for the service that it started.
    fn in_turn(&self, mut pids: Vec<u32>) -> Vec<u32> {
        let holders: HashSet<u32> =
            self.known.values().filter_map(|(holder, _)| holder.owner()).map(|o| o.pid).collect();
        pids.sort_unstable_by_key(|pid| (*pid == 1, *pid));
        let turn = pids.iter().position(|pid| *pid >= self.next).unwrap_or(0);
        pids.rotate_left(turn);
        pids.sort_by_key(|pid| *pid == 1 || !holders.contains(pid));
        pids
    }

    /// Who holds this socket, as far as known.
    pub(super) fn of(&self, inode: u64) -> &Holder {
        let inferred = self.by_cgroup.get(&inode);
        match self.known.get(&inode) {
            // Process 1 keeps it for somebody, who may be known.
            Some((holder, _)) if holder.is_init() => inferred.unwrap_or(holder),
            Some((holder, _)) if *holder != Holder::Unknown => holder,
            _ => inferred.unwrap_or(&Holder::Unknown),
        }
    }

    /// Where a socket was opened whose holder is not known: the cgroup's path, and whether this machine opened the connection.
    pub(super) fn opened_in(&self, inode: u64) -> Option<(&str, bool)> {
        self.opened_in.get(&inode).map(|(path, outbound)| (path.as_str(), *outbound))
    }

    /// Takes whoever runs in the cgroup that opened a socket for its holder, where no process has shown it, or process 1 alone. `opened` names the sockets
    /// with their cgroups, and what they are to those.
    pub(super) fn infer(&mut self, opened: impl Iterator<Item = (u64, Opened)>, whose: &mut Whose<'_>) {
        self.by_cgroup.clear();
        self.opened_in.clear();
        for (inode, Opened { cgroup, role }) in opened {
            let is_inits = self.of(inode).is_init();
            if *self.of(inode) != Holder::Unknown && !is_inits {
                continue;
            }
            if let Some(InCgroup { command, class, path }) = whose.of_cgroup(cgroup, role) {
                self.by_cgroup.insert(inode, Holder::Process(Owner { command, class, pid: 0, cgroup: Some(path) }));
            } else if let Some(path) = whose.path_of_cgroup(cgroup).filter(|_| !is_inits) {
                self.opened_in.insert(inode, (path, role == Role::Connects));
            }
        }
    }
}

impl Holder {
    /// Whether it is process 1.
    fn is_init(&self) -> bool {
        self.owner().is_some_and(|owner| owner.pid == 1)
    }

    /// The process, if it is one.
    pub(super) fn owner(&self) -> Option<&Owner> {
        if let Self::Process(owner) = self { Some(owner) } else { None }
    }
}

/// What a process shows of what it has open.
#[derive(Debug, Default)]
struct Shown {
    /// Which of the missing inodes it has.
    found: Vec<u64>,
    /// Whether that is all that it has open.
    is_whole: bool,
    /// Whether it may not be asked: who lacks the right may see that there are descriptors, and not what they are.
    denied: bool,
}

fn held(proc: &Path, pid: u32, most: usize, missing: &HashSet<u64>, links: &mut usize) -> io::Result<Shown> {
    let mut shown = Shown { is_whole: true, ..Shown::default() };
    let mut entries = fs::read_dir(proc.join(pid.to_string()).join("fd"))?;
    for entry in entries.by_ref().take(most) {
        *links += 1;
        let target = match fs::read_link(entry?.path()) {
            Ok(target) => target,
            Err(error) => {
                // What was closed in between is no socket of anybody's any more.
                shown.is_whole &= error.kind() == io::ErrorKind::NotFound;
                shown.denied |= error.kind() == io::ErrorKind::PermissionDenied;
                continue;
            }
        };
        let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        shown.found.extend(inode.filter(|inode| missing.contains(inode)));
    }
    shown.is_whole &= entries.next().is_none();
    Ok(shown)
}

fn owner(proc: &Path, pid: u32, classify: &mut Whose<'_>) -> Option<Owner> {
    let identity = Identity::read(proc, pid).ok()?;
    let class = classify.of_process(pid, &identity);
    Some(Owner { command: identity.name, class, pid, cgroup: identity.cgroup_path })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn classify(_: u32, process: &Identity) -> Class {
        if process.name == "python3" { Class::Workload } else { Class::Housekeeping }
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
        owners.refresh(proc.path(), &HashSet::from([5, 6, 7, 8]), &mut classify);
        let name = |owners: &Owners, inode| owners.of(inode).owner().map(|owner| (owner.command.clone(), owner.class));
        assert_eq!(name(&owners, 5), Some(("systemd".into(), Class::Housekeeping)));
        assert_eq!(name(&owners, 6), Some(("sshd".into(), Class::Housekeeping)));
        assert_eq!(name(&owners, 7), Some(("python3".into(), Class::Workload)));
        assert_eq!(owners.of(8), &Holder::Kernel, "everybody has shown everything, and nobody has it");
        // What is known is not looked for again, and what nobody wants is forgotten.
        fs::remove_dir_all(proc.path().join("31")).unwrap();
        owners.refresh(proc.path(), &HashSet::from([7]), &mut classify);
        assert_eq!(name(&owners, 7), Some(("python3".into(), Class::Workload)));
        assert_eq!(owners.known.len(), 1);
    }

    /// Process 1 listens at one port for somebody whom its units name, and at another one for nobody knows whom.
    struct Units;

    impl crate::host::whose::Attribute for Units {
        fn of_process(&mut self, _: u32, _: &Identity) -> Class {
            Class::Housekeeping
        }

        fn of_cgroup(&mut self, _: u64, role: Role) -> Option<InCgroup> {
            let is_sshs = role == Role::Listens { port: 22 };
            let (command, path) = ("sshd".to_owned(), "/init.scope".to_owned());
            is_sshs.then_some(InCgroup { command, class: Class::Housekeeping, path })
        }

        fn path_of_cgroup(&mut self, _: u64) -> Option<String> {
            Some("/init.scope".to_owned())
        }
    }

    #[test]
    fn a_port_that_process_1_keeps_is_that_of_whom_the_units_name() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 1, "systemd", &[5, 6]);
        process(proc.path(), 30, "python3", &[7]);
        let mut owners = Owners::default();
        owners.refresh(proc.path(), &HashSet::from([5, 6, 7]), &mut Units);
        let listens = |inode, port| (inode, Opened { cgroup: 4, role: Role::Listens { port } });
        owners.infer([listens(5, 22), listens(6, 80), listens(7, 22)].into_iter(), &mut Units);
        let held = |inode| owners.of(inode).owner().map(|owner| (owner.command.as_str(), owner.pid));
        assert_eq!(held(5), Some(("sshd", 0)), "it serves itself what it accepts");
        assert_eq!(held(6), Some(("systemd", 1)));
        assert_eq!(held(7), Some(("python3", 30)), "who shows that he holds it holds it");
        assert_eq!(owners.opened_in(6), None);
    }

    #[test]
    fn a_long_search_goes_on_at_the_next_sample() {
        let proc = tempfile::tempdir().unwrap();
        for pid in 2..12 {
            process(proc.path(), pid, "x", &[]);
            for fd in 10..20 {
                symlink("/dev/null", proc.path().join(format!("{pid}/fd/{fd}"))).unwrap();
            }
        }
        process(proc.path(), 20, "server", &[77]);
        let mut owners = Owners { may_read: 20, max_links: 20, max_links_per_process: 5, ..Owners::default() };
        let samples = (1..=5).find(|_| {
            owners.refresh(proc.path(), &HashSet::from([77]), &mut classify);
            owners.of(77).owner().is_some()
        });
        assert_eq!(samples, Some(3), "4 processes of 5 links in each sample");
        // What is not found among the links that are read may be among those that are not.
        let all = (0..9).find(|_| {
            owners.refresh(proc.path(), &HashSet::from([78]), &mut classify);
            owners.known.contains_key(&78)
        });
        assert!(all.is_some() && owners.of(78) == &Holder::Unknown);
    }
}
