//! The tasks' books from `/proc` alone, where eBPF is refused.
//!
//! It sees who lives at a reading and nobody else: a process that is born and dies between two readings leaves no record, and the
//! last stretch of one that dies is lost. CPU time comes in ticks of the kernel (10 ms). Cost: four small files per process. Births, program starts and deaths are not counted at all rather than too low.

use super::{Ledger, Measured, Standing, comm_bytes};
use crate::coverage::Status;
use node_agent_ebpf::{Key, Totals, counter, hierarchy};
use std::{collections::HashMap, fs, io, path::Path};

/// `PF_KTHREAD`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L1694>
const PF_KTHREAD: u64 = 0x0020_0000;

/// What one process showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    cpu_ticks: u64,
    disk: Option<(u64, u64)>,
}

/// One line of `/proc/PID/stat`: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    name: Vec<u8>,
    is_zombie: bool,
    parent: u32,
    is_kernel_thread: bool,
    cpu_ticks: u64,
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
            cpu_ticks: number(14)?.saturating_add(number(15)?),
            threads: u32::try_from(number(20)?).ok()?,
            start_ticks: number(22)?,
        })
    }
}

/// The path in the tree that the kernel side would choose, too: version 2 below its root, else `cpuacct`, else `pids`.
fn cgroup_path(text: &str) -> String {
    let path = |wanted: &str| {
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let found = if wanted.is_empty() {
                controllers.is_empty()
            } else {
                controllers.split(',').any(|controller| controller == wanted)
            };
            (found && path != "/").then(|| path.to_owned())
        })
    };
    path("").or_else(|| path("cpuacct")).or_else(|| path("pids")).unwrap_or_else(|| "/".to_owned())
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse().ok())
}

/// The reader; remembers what each living process had shown before.
#[derive(Debug, Default)]
pub struct Fallback {
    seen: HashMap<(u32, u64), Seen>,
    has_read: bool,
    /// Whether storage traffic of every process could be read at the last reading.
    pub has_disk_bytes: bool,
}

impl Fallback {
    /// What it measures, and why not the rest; `refusal` says why it is not eBPF.
    #[must_use]
    pub fn standing(&self, refusal: &(Status, String)) -> Standing {
        let measured =
            Measured { tasks: true, disk: self.has_disk_bytes, memory: true, cgroups: true, ..Measured::default() };
        let mut standing = Standing::of(measured);
        for name in ["ebpf", "births", "short_lives", "oom_kills", "exit_status", "direct_reclaim", "network"] {
            standing.lacks(name, refusal.0, refusal.1.clone());
        }
        for name in
            ["cpu_split", "run_queue_delay", "switches", "faults", "call_counts", "blocked_io", "syscall_classes"]
        {
            standing.lacks(name, refusal.0, refusal.1.clone());
        }
        if !self.has_disk_bytes {
            let reason = "/proc/PID/io of other users' processes cannot be read without CAP_SYS_PTRACE";
            standing.lacks("disk_io", Status::Denied, reason);
        }
        let reason = "/proc forgets a process when it ends";
        standing.lacks("memory_peak_of_the_dead", Status::Unsupported, reason);
        standing
    }

    /// What living processes did since the last reading. The first reading finds no news: it is the baseline.
    ///
    /// # Errors
    /// If `/proc` cannot be listed.
    pub fn read(&mut self) -> io::Result<Ledger> {
        let mut processes = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // Who ends while we look is no error.
            if let Some(stat) = fs::read(format!("/proc/{pid}/stat")).ok().and_then(|line| Stat::parse(&line)) {
                processes.insert(pid, stat);
            }
        }
        let mut ledger = Ledger::default();
        let mut ids: HashMap<String, u64> = HashMap::new();
        let mut now = HashMap::with_capacity(processes.len());
        self.has_disk_bytes = true;
        for (pid, stat) in &processes {
            let dir = format!("/proc/{pid}");
            let Ok(status) = fs::read_to_string(Path::new(&dir).join("status")) else { continue };
            let disk = match fs::read_to_string(Path::new(&dir).join("io")) {
                Ok(io) => number_after(&io, "read_bytes:").zip(number_after(&io, "write_bytes:")),
                Err(error) => {
                    self.has_disk_bytes &= error.kind() == io::ErrorKind::NotFound;
                    None
                }
            };
            let path = fs::read_to_string(Path::new(&dir).join("cgroup")).map(|text| cgroup_path(&text));
            let next_id = ids.len() as u64 + 1;
            let cgroup_id = path.ok().map_or(0, |path| *ids.entry(path).or_insert(next_id));
            let key = Key {
                cgroup_id,
                task_id: 0,
                uid: number_after(&status, "Uid:").and_then(|uid| u32::try_from(uid).ok()).unwrap_or(u32::MAX),
                hierarchy: hierarchy::V2,
                kernel_thread: u8::from(stat.is_kernel_thread),
                own: u8::from(*pid == std::process::id()),
                buffer: 0,
                comm: comm_bytes(&stat.name),
                parent_comm: processes.get(&stat.parent).map_or([0; 16], |parent| comm_bytes(&parent.name)),
            };
            let seen = Seen { cpu_ticks: stat.cpu_ticks, disk };
            let totals = self.news(*pid, stat, seen, number_after(&status, "VmHWM:").unwrap_or(0) * 1024);
            now.insert((*pid, stat.start_ticks), seen);
            let share = ledger.share(key);
            super::add_totals(&mut share.totals, &totals);
            if !stat.is_zombie {
                let resident_bytes = number_after(&status, "VmRSS:").unwrap_or(0) * 1024;
                share.resident_bytes = share.resident_bytes.saturating_add(resident_bytes);
                share.live_processes = share.live_processes.saturating_add(1);
                share.live_threads = share.live_threads.saturating_add(stat.threads);
            }
        }
        self.seen = now;
        self.has_read = true;
        ledger.paths = Some(ids.into_iter().map(|(path, id)| (id, path)).collect());
        Ok(ledger)
    }

    fn news(&self, pid: u32, stat: &Stat, now: Seen, peak_resident_bytes: u64) -> Totals {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let before = match self.seen.get(&(pid, stat.start_ticks)) {
            Some(before) => *before,
            None if self.has_read => Seen { cpu_ticks: 0, disk: Some((0, 0)) },
            None => now,
        };
        let (read, written) = now
            .disk
            .zip(before.disk)
            .map_or((0, 0), |(now, before)| (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1)));
        let mut totals = Totals { peak_resident_bytes, ..Totals::default() };
        totals.counters[counter::CPU_NS] = now.cpu_ticks.saturating_sub(before.cpu_ticks).saturating_mul(tick_ns);
        totals.counters[counter::DISK_READ_BYTES] = read;
        totals.counters[counter::DISK_WRITTEN_BYTES] = written;
        totals
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        let line = b"17 (a) b) (c) S 1 17 17 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 3 0 4711 1 2 3";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.name, b"a) b) (c");
        assert_eq!((stat.parent, stat.cpu_ticks, stat.threads, stat.start_ticks), (1, 300, 3, 4711));
        assert!(!stat.is_zombie && !stat.is_kernel_thread);
        assert_eq!(Stat::parse(b"17 (a S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn the_deepest_known_tree_names_the_workload() {
        for (text, expected) in [
            ("0::/system.slice/cron.service\n", "/system.slice/cron.service"),
            ("3:cpu,cpuacct:/docker/1\n2:pids:/x\n0::/\n", "/docker/1"),
            ("4:memory:/m\n2:pids:/system.slice/a.service\n0::/\n", "/system.slice/a.service"),
            ("4:memory:/m\n0::/\n", "/"),
            ("", "/"),
        ] {
            assert_eq!(cgroup_path(text), expected, "{text}");
        }
    }

    #[test]
    fn the_second_reading_shows_what_this_process_did_in_between() {
        let mut fallback = Fallback::default();
        let own = |ledger: &Ledger| {
            ledger.shares.iter().filter(|(key, _)| key.own == 1).map(|(_, share)| *share).next().unwrap()
        };
        let first = own(&fallback.read().unwrap());
        assert_eq!(first.totals.counters[counter::CPU_NS], 0);
        assert_eq!(first.live_processes, 1);
        let begin = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        while rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec < begin.tv_sec + 1 {
            std::hint::spin_loop();
        }
        assert!(own(&fallback.read().unwrap()).totals.counters[counter::CPU_NS] > 0);
    }
}
