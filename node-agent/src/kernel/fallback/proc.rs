//! Who lives, from `/proc`: four small files per process.
//!
//! CPU time comes in ticks of the kernel (10 ms). A process that is born and dies between two readings leaves nothing here.

use super::dead::Place;
use crate::{
    coverage::Status,
    host::process::{cgroup_path, executable},
    kernel::comm_bytes,
};
use node_agent_ebpf::{COMM_BYTES, Executable, Totals, counter};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::Path,
    sync::Arc,
};

/// `PF_KTHREAD`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L1694>
const PF_KTHREAD: u64 = 0x0020_0000;

/// What a process has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Of that, in user mode.
    pub user_ns: u64,
    /// Of that, in kernel mode.
    pub system_ns: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults that needed storage.
    pub major_faults: u64,
    /// Storage and calls; `None` if the agent may not look.
    pub io: Option<Io>,
}

/// What a process has read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Io {
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
    /// Read system calls.
    pub read_calls: u64,
    /// Write system calls.
    pub write_calls: u64,
}

impl Io {
    fn with(self, other: Self, each: fn(u64, u64) -> u64) -> Self {
        Self {
            read_bytes: each(self.read_bytes, other.read_bytes),
            written_bytes: each(self.written_bytes, other.written_bytes),
            read_calls: each(self.read_calls, other.read_calls),
            write_calls: each(self.write_calls, other.write_calls),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            read_bytes: number_after(text, "read_bytes:")?,
            written_bytes: number_after(text, "write_bytes:")?,
            read_calls: number_after(text, "syscr:")?,
            write_calls: number_after(text, "syscw:")?,
        })
    }
}

impl Sums {
    fn with(self, other: Self, each: fn(u64, u64) -> u64) -> Self {
        Self {
            cpu_ns: each(self.cpu_ns, other.cpu_ns),
            user_ns: each(self.user_ns, other.user_ns),
            system_ns: each(self.system_ns, other.system_ns),
            minor_faults: each(self.minor_faults, other.minor_faults),
            major_faults: each(self.major_faults, other.major_faults),
            io: None,
        }
    }

    /// What came on top of `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let io = self.io.zip(before.io).map(|(now, then)| now.with(then, u64::saturating_sub));
        Self { io, ..self.with(before, u64::saturating_sub) }
    }

    /// The sum of both; what neither knows stays unknown.
    pub(super) fn plus(self, other: Self) -> Self {
        let io = self
            .io
            .or(other.io)
            .map(|_| self.io.unwrap_or_default().with(other.io.unwrap_or_default(), u64::saturating_add));
        Self { io, ..self.with(other, u64::saturating_add) }
    }

    /// As the rows keep them.
    pub(super) fn totals(self) -> Totals {
        let mut totals = Totals::default();
        let io = self.io.unwrap_or_default();
        for (index, value) in [
            (counter::CPU_NS, self.cpu_ns),
            (counter::USER_NS, self.user_ns),
            (counter::SYSTEM_NS, self.system_ns),
            (counter::MINOR_FAULTS, self.minor_faults),
            (counter::MAJOR_FAULTS, self.major_faults),
            (counter::DISK_READ_BYTES, io.read_bytes),
            (counter::DISK_WRITTEN_BYTES, io.written_bytes),
            (counter::READ_CALLS, io.read_calls),
            (counter::WRITE_CALLS, io.write_calls),
        ] {
            totals.counters[index] = value;
        }
        totals
    }
}

/// By what the books are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Whose {
    /// Path of the cgroup; `None` if nobody knows it any more.
    pub path: Option<Arc<str>>,
    /// The real user.
    pub uid: u32,
    /// Executable name.
    pub comm: [u8; COMM_BYTES],
    /// What it executes; empty if it is not known.
    pub executable: Executable,
    /// The kernel's own.
    pub is_kernel_thread: bool,
    /// A process of this agent.
    pub is_own: bool,
}

/// A process that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// When it began, in ticks since boot.
    pub start_ticks: u64,
    /// Whose it is.
    pub whose: Whose,
    /// What it has used.
    pub sums: Sums,
    /// Highest resident memory so far, in bytes.
    pub peak_resident_bytes: u64,
    /// Resident memory now, in bytes.
    pub resident_bytes: u64,
    /// Threads that live.
    pub threads: u32,
    /// It has ended, and its parent has not asked yet how.
    pub is_dead: bool,
}

/// One line of `/proc/PID/stat`: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    name: Vec<u8>,
    is_zombie: bool,
    parent: u32,
    is_kernel_thread: bool,
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
    threads: u32,
    start_ticks: u64,
}

impl Stat {
    /// The name may hold anything, parentheses and spaces too: the last parenthesis ends it.
    fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The state is field 3 of the manual page and the first one here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name: line.get(open + 1..close)?.to_vec(),
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: u32::try_from(number(4)?).ok()?,
            is_kernel_thread: number(9)? & PF_KTHREAD != 0,
            minor_faults: number(10)?,
            major_faults: number(12)?,
            user_ticks: number(14)?,
            system_ticks: number(15)?,
            threads: u32::try_from(number(20)?).ok()?,
            start_ticks: number(22)?,
        })
    }
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse().ok())
}

/// Everybody who lives.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// By process id.
    pub processes: HashMap<u32, Process>,
    /// Why storage and calls of some process could not be read.
    pub hides_io: Option<(Status, &'static str)>,
}

const NO_ACCOUNTING: (Status, &str) =
    (Status::Unsupported, "this kernel keeps no /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)");
const NOT_SHOWN: (Status, &str) =
    (Status::Denied, "/proc/PID/io of other users' processes cannot be read without CAP_SYS_PTRACE");
const HIDDEN: (Status, &str) = (Status::Denied, "/proc hides the processes of other users (hidepid)");

/// Reads `/proc`. Who ends while it looks is no error.
///
/// # Errors
/// If `/proc` cannot be listed, or a process that has not ended cannot be read.
pub(super) fn scan() -> io::Result<Scan> {
    scan_under(Path::new("/proc"))
}

fn scan_under(proc: &Path) -> io::Result<Scan> {
    // Without accounting, a file that is missing would pass for a process that is gone: this process is not.
    let own_io = fs::read_to_string(proc.join("self/io")).ok().and_then(|text| Io::parse(&text));
    let mut scan = Scan { processes: HashMap::new(), hides_io: own_io.is_none().then_some(NO_ACCOUNTING) };
    let mut stats = HashMap::new();
    for entry in fs::read_dir(proc)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        match stat(proc, pid) {
            Ok(stat) => {
                stats.insert(pid, stat);
            }
            Err(error) if is_gone(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => scan.hides_io = Some(HIDDEN),
            Err(error) => return Err(error),
        }
    }
    if !stats.contains_key(&1) {
        scan.hides_io = Some(HIDDEN);
    }
    let mut paths = HashSet::new();
    for (pid, stat) in &stats {
        if let Some(process) = look_at(proc, *pid, stat, &mut paths, &mut scan.hides_io)? {
            scan.processes.insert(*pid, process);
        }
    }
    Ok(scan)
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Where one process belongs, if it still lives.
pub(super) fn place_of(pid: u32) -> Option<Place> {
    let path = cgroup_path(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?);
    Some(Place { path: Some(path.into()), executable: executable(Path::new("/proc"), pid) })
}

fn stat(proc: &Path, pid: u32) -> io::Result<Stat> {
    let line = fs::read(proc.join(pid.to_string()).join("stat"))?;
    Stat::parse(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat has an unknown shape"))
}

fn look_at(
    proc: &Path,
    pid: u32,
    stat: &Stat,
    paths: &mut HashSet<Arc<str>>,
    hides_io: &mut Option<(Status, &'static str)>,
) -> io::Result<Option<Process>> {
    let dir = proc.join(pid.to_string());
    let status = match fs::read_to_string(dir.join("status")) {
        Err(error) if is_gone(&error) => return Ok(None),
        status => status?,
    };
    let io = match fs::read_to_string(dir.join("io")) {
        Ok(io) => {
            let io = Io::parse(&io);
            if io.is_none() {
                *hides_io = Some(NO_ACCOUNTING);
            }
            io
        }
        Err(error) => {
            if !is_gone(&error) {
                *hides_io = Some(NOT_SHOWN);
            }
            None
        }
    };
    let path = fs::read_to_string(dir.join("cgroup")).ok().map(|text| cgroup_path(&text));
    let path = path.map(|path| match paths.get(path.as_str()) {
        Some(known) => Arc::clone(known),
        None => {
            let path: Arc<str> = path.into();
            paths.insert(Arc::clone(&path));
            path
        }
    });
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Ok(Some(Process {
        start_ticks: stat.start_ticks,
        whose: Whose {
            path,
            uid: number_after(&status, "Uid:").and_then(|uid| u32::try_from(uid).ok()).unwrap_or(u32::MAX),
            comm: comm_bytes(&stat.name),
            executable: if stat.is_kernel_thread { Executable::default() } else { executable(proc, pid) },
            is_kernel_thread: stat.is_kernel_thread,
            is_own: pid == std::process::id(),
        },
        sums: Sums {
            cpu_ns: stat.user_ticks.saturating_add(stat.system_ticks).saturating_mul(tick_ns),
            user_ns: stat.user_ticks.saturating_mul(tick_ns),
            system_ns: stat.system_ticks.saturating_mul(tick_ns),
            minor_faults: stat.minor_faults,
            major_faults: stat.major_faults,
            io,
        },
        peak_resident_bytes: number_after(&status, "VmHWM:").unwrap_or(0).saturating_mul(1024),
        resident_bytes: number_after(&status, "VmRSS:").unwrap_or(0).saturating_mul(1024),
        threads: stat.threads,
        // A first thread that ended before the others leaves the process alive.
        is_dead: stat.is_zombie && stat.threads < 2,
    }))
}

#[cfg(test)]
#[path = "proc_tests.rs"]
mod tests;
