//! One process as `/proc` shows it: who it is, what it executes, in which cgroup. Never what it was given or holds.
//!
//! Cost: three small files for [`Identity`], and the metadata of its executable.

use super::{cgroup_namespace::host_places, place::telling, stat::Stat};
use node_agent_ebpf::Executable;
use rustix::fs::{major, minor};
use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Where a link of a process in the host's own pid namespace leads.
const HOSTS_PID_NAMESPACE: &str = "pid:[4026531836]";

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
        Ok(Self {
            executable: executable(proc, pid),
            uid: text("status").map_or(u32::MAX, |status| uid(&status)),
            cgroup_path: cgroup_path_of(proc, pid),
            name: stat.visible_name(),
        })
    }
}

/// The real user, from `/proc/PID/status`; `u32::MAX` if it does not say.
#[must_use]
pub fn uid(status: &str) -> u32 {
    number_after(status, "Uid:").and_then(|uid| u32::try_from(uid).ok()).unwrap_or(u32::MAX)
}

/// The first number behind a name, in a file of one name a line.
#[must_use]
pub fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse().ok())
}

/// The file that a process executes; empty if that cannot be read.
#[must_use]
pub fn executable(proc: &Path, pid: u32) -> Executable {
    fs::metadata(proc.join(pid.to_string()).join("exe")).map(|of| executable_of(&of)).unwrap_or_default()
}

/// What the kernel says of the file that this is the metadata of.
#[must_use]
pub fn executable_of(file: &Metadata) -> Executable {
    let (s, ns) = (file.ctime().cast_unsigned(), file.ctime_nsec().cast_unsigned());
    let changed_ns = s.wrapping_mul(1_000_000_000).wrapping_add(ns);
    Executable { inode: file.ino(), changed_ns, device: kernel_device(file.dev()), padding: 0 }
}

/// The kernel's own form of a device number.
#[must_use]
pub fn kernel_device(device: u64) -> u32 {
    (major(device) << 20) | minor(device)
}

/// Key of the workload that a process belongs to, as rows have it; `None` if it cannot be read.
#[must_use]
pub fn workload(proc: &Path, pid: u32) -> Option<String> {
    let mut path = cgroup_path_of(proc, pid)?;
    let end = (0..=heartbeat::envelope::MAX_NAME_BYTES.min(path.len())).rev().find(|end| path.is_char_boundary(*end));
    path.truncate(end.unwrap_or(0));
    Some(path)
}

/// The path that names the workload of a process, as the host has it; `None` if it cannot be read.
#[must_use]
pub fn cgroup_path_of(proc: &Path, pid: u32) -> Option<String> {
    fs::read_to_string(proc.join(pid.to_string()).join("cgroup")).ok().map(|text| cgroup_path(&text))
}

/// From `/proc/PID/cgroup`. Rules of a file only ever exclude more cgroups than the built-in ones do.
fn cgroup_path(text: &str) -> String {
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
    fn this_process_is_found_with_its_parent_and_its_user() {
        let proc = Path::new("/proc");
        let own = Identity::read(proc, std::process::id()).unwrap();
        assert_eq!(own.uid, rustix::process::getuid().as_raw());
        assert!(!own.name.is_empty());
        let file = fs::metadata(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(own.executable, executable_of(&file));
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
