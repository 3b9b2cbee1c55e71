//! Who lives, from `/proc`: four small files per process.
//!
//! CPU time comes in ticks of the kernel (10 ms). A process that starts and exits between two samples leaves nothing here.

use crate::{
    coverage::Status,
    model::comm_bytes,
    procfs::{
        process::{cgroup_path_of, executable, number_after, uid},
        stat::Stat,
    },
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

/// By what counters are kept.
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

/// Where a process belonged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Path of its cgroup; `None` if nobody knows it any more.
    pub path: Option<Arc<str>>,
    /// What it executes; empty if it is not known.
    pub executable: Executable,
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
    pub has_exited: bool,
}

/// What is needed of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    comm: [u8; COMM_BYTES],
    is_zombie: bool,
    is_kernel_thread: bool,
    minor_faults: u64,
    major_faults: u64,
    user_ticks: u64,
    system_ticks: u64,
    threads: u32,
    start_ticks: u64,
}

impl Line {
    fn of(stat: &Stat) -> Option<Self> {
        let [flags, minor_faults, major_faults, user_ticks, system_ticks, threads, start_ticks] =
            stat.numbers([9, 10, 12, 14, 15, 20, 22])?;
        Some(Self {
            comm: comm_bytes(stat.name()),
            is_zombie: stat.is_zombie()?,
            is_kernel_thread: flags & PF_KTHREAD != 0,
            minor_faults,
            major_faults,
            user_ticks,
            system_ticks,
            threads: u32::try_from(threads).ok()?,
            start_ticks,
        })
    }
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
    let mut lines = HashMap::new();
    for entry in fs::read_dir(proc)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        match line(proc, pid) {
            Ok(line) => {
                lines.insert(pid, line);
            }
            Err(error) if is_gone(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => scan.hides_io = Some(HIDDEN),
            Err(error) => return Err(error),
        }
    }
    if !lines.contains_key(&1) {
        scan.hides_io = Some(HIDDEN);
    }
    let mut paths = HashSet::new();
    for (pid, line) in &lines {
        if let Some(process) = read_process(proc, *pid, line, &mut paths, &mut scan.hides_io)? {
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
    let proc = Path::new("/proc");
    Some(Place { path: Some(cgroup_path_of(proc, pid)?.into()), executable: executable(proc, pid) })
}

fn line(proc: &Path, pid: u32) -> io::Result<Line> {
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat has an unknown shape");
    Line::of(&Stat::read(proc, pid)?).ok_or_else(unknown)
}

fn read_process(
    proc: &Path,
    pid: u32,
    line: &Line,
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
    let path = cgroup_path_of(proc, pid).map(|path| match paths.get(path.as_str()) {
        Some(known) => Arc::clone(known),
        None => {
            let path: Arc<str> = path.into();
            paths.insert(Arc::clone(&path));
            path
        }
    });
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Ok(Some(Process {
        start_ticks: line.start_ticks,
        whose: Whose {
            path,
            uid: uid(&status),
            comm: line.comm,
            executable: if line.is_kernel_thread { Executable::default() } else { executable(proc, pid) },
            is_kernel_thread: line.is_kernel_thread,
            is_own: pid == std::process::id(),
        },
        sums: Sums {
            cpu_ns: line.user_ticks.saturating_add(line.system_ticks).saturating_mul(tick_ns),
            user_ns: line.user_ticks.saturating_mul(tick_ns),
            system_ns: line.system_ticks.saturating_mul(tick_ns),
            minor_faults: line.minor_faults,
            major_faults: line.major_faults,
            io,
        },
        peak_resident_bytes: number_after(&status, "VmHWM:").unwrap_or(0).saturating_mul(1024),
        resident_bytes: number_after(&status, "VmRSS:").unwrap_or(0).saturating_mul(1024),
        threads: line.threads,
        // A first thread that ended before the others leaves the process alive.
        has_exited: line.is_zombie && line.threads < 2,
    }))
}

#[cfg(test)]
#[path = "proc_tests.rs"]
mod tests;
