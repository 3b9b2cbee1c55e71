//! One process as `/proc` shows it: who it is, whose child, in which session and cgroup. Never what it was given or holds.
//!
//! Cost: one small file for [`Stat`], two more for [`Identity`].

use super::{cgroup_namespace::host_places, shipped};
use crate::{
    kernel::{comm_bytes, comm_text},
    workload::place::telling,
};
use node_agent_ebpf::Executable;
use std::{fs, io, path::Path};

/// Where a link of a process in the host's own pid namespace leads.
const HOSTS_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What one line of `/proc/PID/stat` says: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Executable name, fit for a terminal.
    pub name: String,
    /// The parent.
    pub parent: u32,
    /// The session's first process.
    pub session: u32,
    /// The controlling terminal as the kernel numbers devices; 0 is none.
    pub terminal: u32,
}

impl Stat {
    /// The name may hold anything, parentheses and spaces too: the last parenthesis ends it.
    fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        // Printed as a signed number.
        let terminal: i32 = fields.next()?.parse().ok()?;
        Some(Self {
            name: comm_text(&comm_bytes(line.get(open + 1..close)?)),
            parent,
            session,
            terminal: u32::from_ne_bytes(terminal.to_ne_bytes()),
        })
    }

    /// Reads it below `proc`.
    ///
    /// # Errors
    /// If the process is gone, or hidden from this user.
    pub fn read(proc: &Path, pid: u32) -> io::Result<Self> {
        let line = fs::read(proc.join(pid.to_string()).join("stat"))?;
        Self::parse(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an unknown shape"))
    }
}

/// Everything that its class is judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Executable name, fit for a terminal.
    pub name: String,
    /// The file that it executes; empty if that cannot be read, which takes `CAP_SYS_PTRACE` for processes of others.
    pub executable: Executable,
    /// The user; `u32::MAX` if it cannot be read.
    pub uid: u32,
    /// In the tree that names its workload; `None` if it cannot be read.
    pub cgroup_path: Option<String>,
}

impl Identity {
    /// Reads it below `proc`.
    ///
    /// # Errors
    /// If the process is gone, or hidden from this user.
    pub fn read(proc: &Path, pid: u32) -> io::Result<Self> {
        let stat = Stat::read(proc, pid)?;
        let text = |file: &str| fs::read_to_string(proc.join(pid.to_string()).join(file));
        let uid = text("status").ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        });
        Ok(Self {
            executable: executable(proc, pid),
            uid: uid.unwrap_or(u32::MAX),
            cgroup_path: text("cgroup").ok().map(|text| cgroup_path(&text)),
            name: stat.name,
        })
    }
}

/// The file that a process executes; empty if that cannot be read.
#[must_use]
pub fn executable(proc: &Path, pid: u32) -> Executable {
    fs::metadata(proc.join(pid.to_string()).join("exe")).map(|of| shipped::executable(&of)).unwrap_or_default()
}

/// Key of the workload that a process belongs to, as rows have it; `None` if it cannot be read.
#[must_use]
pub fn workload(proc: &Path, pid: u32) -> Option<String> {
    let text = fs::read_to_string(proc.join(pid.to_string()).join("cgroup")).ok()?;
    let mut path = cgroup_path(&text);
    let end = (0..=heartbeat::envelope::MAX_NAME_BYTES.min(path.len())).rev().find(|end| path.is_char_boundary(*end));
    path.truncate(end.unwrap_or(0));
    Some(path)
}

/// The path that names the workload, from `/proc/PID/cgroup`, as the host has it. Rules of a file only ever exclude more cgroups than the built-in ones do.
#[must_use]
pub fn cgroup_path(text: &str) -> String {
    let [unified, v1] = host_places(text);
    telling(&workload_rules::built_in().housekeeping, &unified, &v1).to_owned()
}

/// Why this process does not see the host's processes; `None` if it does.
///
/// In a pid namespace of its own, `/proc` and the task iterator show this container alone, and everybody else's work
/// would pass for no work. The first namespace has a fixed number (`PROC_PID_INIT_INO`):
/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/proc_ns.h#L45>
#[must_use]
pub fn hidden_host(proc: &Path) -> Option<String> {
    let remedy = "give it the host's process ids (docker --pid=host, Kubernetes hostPID: true)";
    match fs::read_link(proc.join("self/ns/pid")) {
        Ok(link) if link == Path::new(HOSTS_PID_NAMESPACE) => None,
        Ok(_) => Some(format!("the agent sees the processes of its own container and not the host's; {remedy}")),
        // A kernel without pid namespaces has but one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("whether the agent sees the host's processes is not known ({error}); {remedy}")),
    }
}

/// Every process id below `proc`, in no order.
///
/// # Errors
/// If it cannot be listed.
pub fn list(proc: &Path) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(proc)?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = Stat::parse(b"17 (a) b\x1b[31m(c) S 12 17 16 34819 -1 4194560 1 2 3").unwrap();
        assert_eq!(stat, Stat { name: "a) b\\u{1b}[31m(c".into(), parent: 12, session: 16, terminal: 34_819 });
        for broken in [&b""[..], b"17 (a S 1", b"17 (a) S 1 2", b"17 (\xff) S x 1 1 1"] {
            assert_eq!(Stat::parse(broken), None);
        }
    }

    #[test]
    fn this_process_is_found_with_its_parent_and_its_user() {
        let proc = Path::new("/proc");
        let own = Identity::read(proc, std::process::id()).unwrap();
        assert_eq!(own.uid, rustix::process::getuid().as_raw());
        assert!(!own.name.is_empty());
        let file = fs::metadata(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(own.executable, shipped::executable(&file));
        assert_eq!(executable(proc, 0), Executable::default());
        assert!(own.cgroup_path.is_some_and(|path| path.starts_with('/')));
        assert!(list(proc).unwrap().contains(&std::process::id()));
        assert!(Identity::read(proc, 0).is_err());
    }

    #[test]
    fn only_the_first_pid_namespace_shows_the_host() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(hidden_host(proc.path()), None, "a kernel without pid namespaces");
        let link = proc.path().join("self/ns/pid");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", &link).unwrap();
        assert_eq!(hidden_host(proc.path()), None);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("pid:[4026532201]", &link).unwrap();
        assert!(hidden_host(proc.path()).is_some_and(|why| why.contains("--pid=host") && why.contains("hostPID")));
        fs::remove_file(&link).unwrap();
        fs::write(&link, "").unwrap();
        assert!(hidden_host(proc.path()).is_some_and(|why| why.contains("not known")));
    }

    #[test]
    fn the_path_that_tells_more_names_the_workload() {
        for (text, expected) in [
            ("0::/system.slice/cron.service\n", "/system.slice/cron.service"),
            ("3:cpu,cpuacct:/docker/1\n0::/system.slice/containerd.service\n", "/docker/1"),
            ("", "/"),
        ] {
            assert_eq!(cgroup_path(text), expected, "{text}");
        }
    }
}
