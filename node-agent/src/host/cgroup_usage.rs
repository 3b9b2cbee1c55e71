//! What the cgroups' controllers say of each workload: time held back by a limit of CPU time, memory in use, and its peak.
//! <https://docs.kernel.org/admin-guide/cgroup-v2.html>, <https://docs.kernel.org/admin-guide/cgroup-v1/memory.html>
//!
//! Only of cgroups in which something lives, and never of the root, which has no such counters (version 2) or those of the whole machine (version 1).
//! In version 1 each controller has a tree of its own, and a workload may stand at another path in each: a cgroup is taken for a row's only if the
//! first process in it is that row's. A controller that is off leaves its columns absent. Cost: four small files per cgroup in
//! version 2, eight in version 1: see `docs/journal/2026-11-22-counting.md`.

use crate::procfs::{cgroups::Mounts, process};
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

/// `memory.stat` has about 70 lines.
const MAX_BYTES: usize = 8 * 1024;

/// What the controllers say of one cgroup and all below it; absent is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in which tasks were held back by the cgroup's limit, in nanoseconds, since it was made.
    pub cpu_throttled_ns: Option<u64>,
    /// Periods in which that happened.
    pub cpu_throttled_periods: Option<u64>,
    /// Memory charged, less file pages that nobody used lately, in bytes.
    pub memory_working_set_bytes: Option<u64>,
    /// The most that was ever charged, in bytes.
    pub memory_peak_bytes: Option<u64>,
}

/// Where the controllers are.
#[derive(Clone, Debug)]
pub struct Controllers {
    proc: PathBuf,
    v2: Option<PathBuf>,
    v1_cpu: Option<PathBuf>,
    v1_memory: Option<PathBuf>,
}

impl Controllers {
    /// By the trees that are mounted.
    #[must_use]
    pub fn new(mounts: &Mounts) -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            v2: mounts.v2().map(Path::to_owned),
            v1_cpu: mounts.v1_cpu().map(Path::to_owned),
            v1_memory: mounts.v1_memory().map(Path::to_owned),
        }
    }

    /// Whether there is any to ask.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.v2.is_some() || self.v1_cpu.is_some() || self.v1_memory.is_some()
    }

    /// What they say of the cgroup of this path.
    #[must_use]
    pub fn read(&self, path: &str) -> Usage {
        let relative = path.trim_start_matches('/');
        if relative.is_empty() {
            return Usage::default();
        }
        let mut buffer = [0; MAX_BYTES];
        let mut usage = Usage::default();
        if let Some(folder) = self.v2.as_deref().map(|root| root.join(relative)) {
            usage = usage_v2(&folder, &mut buffer);
        }
        if let Some(folder) = self.v1_cpu.as_deref().and_then(|root| self.of_row(root, path)) {
            let stat = text(&folder.join("cpu.stat"), &mut buffer);
            usage.cpu_throttled_ns = usage.cpu_throttled_ns.or_else(|| line(stat?, "throttled_time "));
            usage.cpu_throttled_periods = usage.cpu_throttled_periods.or_else(|| line(stat?, "nr_throttled "));
        }
        if let Some(folder) = self.v1_memory.as_deref().and_then(|root| self.of_row(root, path)) {
            let current = text(&folder.join("memory.usage_in_bytes"), &mut buffer).and_then(number);
            let inactive = text(&folder.join("memory.stat"), &mut buffer);
            let inactive = inactive.and_then(|stat| line(stat, "total_inactive_file "));
            usage.memory_working_set_bytes = usage.memory_working_set_bytes.or(without(current, inactive));
            let peak = text(&folder.join("memory.max_usage_in_bytes"), &mut buffer).and_then(number);
            usage.memory_peak_bytes = usage.memory_peak_bytes.or(peak);
        }
        usage
    }

    /// The folder of this path in a tree of version 1, if the row's processes stand there.
    fn of_row(&self, root: &Path, path: &str) -> Option<PathBuf> {
        let folder = root.join(path.trim_start_matches('/'));
        let mut buffer = [0; 32];
        let pids = text(&folder.join("cgroup.procs"), &mut buffer)?;
        // The buffer may end within a later one.
        let pid = pids.split_once('\n')?.0.parse().ok()?;
        (process::workload(&self.proc, pid).as_deref() == Some(path)).then_some(folder)
    }
}

fn usage_v2(folder: &Path, buffer: &mut [u8; MAX_BYTES]) -> Usage {
    let stat = text(&folder.join("cpu.stat"), buffer);
    let cpu_throttled_ns = stat.and_then(|stat| line(stat, "throttled_usec ")?.checked_mul(1_000));
    let cpu_throttled_periods = stat.and_then(|stat| line(stat, "nr_throttled "));
    let current = text(&folder.join("memory.current"), buffer).and_then(number);
    let inactive = current.and_then(|_| line(text(&folder.join("memory.stat"), buffer)?, "inactive_file "));
    Usage {
        cpu_throttled_ns,
        cpu_throttled_periods,
        memory_working_set_bytes: without(current, inactive),
        memory_peak_bytes: text(&folder.join("memory.peak"), buffer).and_then(number),
    }
}

/// Both are read one after the other: what was freed in between leaves nothing, not less than that.
fn without(current: Option<u64>, inactive: Option<u64>) -> Option<u64> {
    Some(current?.saturating_sub(inactive?))
}

/// The file's begin. The kernel gives a file of a cgroup in one piece where it fits.
fn text<'a>(file: &Path, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = File::open(file).ok()?.read(buffer).ok()?;
    std::str::from_utf8(buffer.get(..length)?).ok()
}

fn number(text: &str) -> Option<u64> {
    text.trim_ascii().parse().ok()
}

fn line(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)).and_then(number)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::fs;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn version_2_says_it_in_one_place_and_what_is_off_is_absent() {
        let root = tempfile::tempdir().unwrap();
        let controllers =
            Controllers { proc: PathBuf::new(), v2: Some(root.path().to_owned()), v1_cpu: None, v1_memory: None };
        write(
            &root.path().join("a"),
            &[
                ("cpu.stat", "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 12\n"),
                ("memory.current", "1000\n"),
                ("memory.stat", "anon 1\nfile 2\ninactive_file 300\n"),
                ("memory.peak", "2000\n"),
            ],
        );
        write(&root.path().join("b"), &[("cpu.stat", "usage_usec 9\n"), ("memory.current", "5\n")]);
        let expected = Usage {
            cpu_throttled_ns: Some(12_000),
            cpu_throttled_periods: Some(3),
            memory_working_set_bytes: Some(700),
            memory_peak_bytes: Some(2_000),
        };
        assert_eq!(controllers.read("/a"), expected);
        assert_eq!(controllers.read("/b"), Usage::default(), "half of a difference is none");
        for nowhere in ["/", "/c"] {
            assert_eq!(controllers.read(nowhere), Usage::default());
        }
    }

    #[test]
    fn version_1_says_it_in_two_trees_of_the_rows_own_processes_alone() {
        let root = tempfile::tempdir().unwrap();
        let [cpu, memory, proc] = ["cpu", "memory", "proc"].map(|name| root.path().join(name));
        write(&proc.join("7"), &[("cgroup", "4:cpuacct:/docker/1\n3:memory:/docker/1\n")]);
        write(&proc.join("8"), &[("cgroup", "4:cpuacct:/docker/2\n3:memory:/docker/1\n")]);
        write(&cpu.join("docker/1"), &[("cgroup.procs", "7\n"), ("cpu.stat", "nr_throttled 2\nthrottled_time 5\n")]);
        let stat = [("memory.usage_in_bytes", "90\n"), ("memory.stat", "inactive_file 1\ntotal_inactive_file 20\n")];
        write(
            &memory.join("docker/1"),
            &[&stat[..], &[("cgroup.procs", "7\n8\n"), ("memory.max_usage_in_bytes", "95\n")]].concat(),
        );
        let controllers = Controllers { proc, v2: None, v1_cpu: Some(cpu), v1_memory: Some(memory.clone()) };
        let expected = Usage {
            cpu_throttled_ns: Some(5),
            cpu_throttled_periods: Some(2),
            memory_working_set_bytes: Some(70),
            memory_peak_bytes: Some(95),
        };
        assert_eq!(controllers.read("/docker/1"), expected);
        write(&memory.join("docker/1"), &[("cgroup.procs", "8\n")]);
        let elsewhere = Usage { memory_working_set_bytes: None, memory_peak_bytes: None, ..expected };
        assert_eq!(controllers.read("/docker/1"), elsewhere, "another workload stands there");
    }
}
