//! The kernel's books of the whole host, from `/proc`: five small files per heartbeat.
//!
//! Each book stands alone: one that cannot be read is absent and names its reason, and the others stay.

use crate::coverage::{Probes, Status};
use std::{fs, path::Path};

/// Books of the whole host, cumulative since boot; absent is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostBooks {
    /// From `/proc/stat`.
    pub cpu: Option<Cpu>,
    /// From `/proc/diskstats`.
    pub disk: Option<Traffic>,
    /// From `/proc/net/dev`.
    pub network: Option<Traffic>,
    /// `processes` of `/proc/stat`: every fork and clone.
    pub tasks_created: Option<u64>,
    /// `oom_kill` of `/proc/vmstat`.
    pub oom_kills: Option<u64>,
    /// `MemAvailable` of `/proc/meminfo`, in bytes, now.
    pub memory_available_bytes: Option<u64>,
}

/// CPU time over all CPUs, in nanoseconds. The kernel counts it in ticks of 10 ms and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In user mode, also at low priority.
    pub user_ns: u64,
    /// In kernel mode, interrupts included.
    pub system_ns: u64,
    /// Given to others by the hypervisor.
    pub steal_ns: u64,
}

/// Bytes in and out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Read or received.
    pub in_bytes: u64,
    /// Written or sent.
    pub out_bytes: u64,
}

const NS_PER_S: u64 = 1_000_000_000;
/// `/proc/diskstats` counts in sectors of this size, whatever the disk's own:
/// <https://docs.kernel.org/admin-guide/iostats.html>
const SECTOR_BYTES: u64 = 512;

/// The `cpu` line of `/proc/stat`. Guest time is part of user time already:
/// <https://man7.org/linux/man-pages/man5/proc_stat.5.html>
fn cpu(stat: &str, ticks_per_s: u64) -> Option<Cpu> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let tick_ns = NS_PER_S.checked_div(ticks_per_s)?;
    let [user, nice, system, _idle, _iowait, irq, softirq, rest @ ..] = ticks.as_slice() else { return None };
    Some(Cpu {
        user_ns: (user + nice).saturating_mul(tick_ns),
        system_ns: (system + irq + softirq).saturating_mul(tick_ns),
        steal_ns: rest.first().copied().unwrap_or(0).saturating_mul(tick_ns),
    })
}

/// One `name value` line.
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse().ok())
}

/// Bytes through whole disks that stand on nothing else: a partition, a mapped, striped or looped device would count
/// the same bytes twice, and memory disks are no storage.
fn disk(diskstats: &str, is_own_disk: impl Fn(&str) -> bool) -> Option<Traffic> {
    let mut sum = Traffic::default();
    for line in diskstats.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = *fields.get(2)?;
        if !is_own_disk(name) {
            continue;
        }
        let sectors = |index: usize| fields.get(index)?.parse::<u64>().ok();
        sum.in_bytes = sum.in_bytes.saturating_add(sectors(5)?.saturating_mul(SECTOR_BYTES));
        sum.out_bytes = sum.out_bytes.saturating_add(sectors(9)?.saturating_mul(SECTOR_BYTES));
    }
    Some(sum)
}

/// A whole disk has an entry of its own in `/sys/block`; it stands on others if `slaves` has entries.
fn is_own_disk(sys_block: &Path, name: &str) -> bool {
    if ["loop", "ram", "zram", "dm-", "md", "sr", "fd"].iter().any(|kind| {
        name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
    }) {
        return false;
    }
    // A name with a slash (`cciss/c0d0`) is written with an exclamation mark here.
    let dir = sys_block.join(name.replace('/', "!"));
    dir.is_dir() && fs::read_dir(dir.join("slaves")).map_or(true, |mut slaves| slaves.next().is_none())
}

/// Bytes over interfaces that stand for a wire: not loopback, and none that only passes on what another one counts.
fn network(dev: &str, is_own_interface: impl Fn(&str) -> bool) -> Option<Traffic> {
    let mut sum = Traffic::default();
    for line in dev.lines().skip(2) {
        let (name, counters) = line.rsplit_once(':')?;
        if !is_own_interface(name.trim()) {
            continue;
        }
        let counters: Vec<&str> = counters.split_ascii_whitespace().collect();
        sum.in_bytes = sum.in_bytes.saturating_add(counters.first()?.parse().ok()?);
        sum.out_bytes = sum.out_bytes.saturating_add(counters.get(8)?.parse().ok()?);
    }
    Some(sum)
}

/// Reads every book and says how each reading went.
#[must_use]
pub fn read(probes: &mut Probes) -> HostBooks {
    read_under(Path::new("/proc"), Path::new("/sys/block"), rustix::param::clock_ticks_per_second(), probes)
}

fn read_under(proc: &Path, sys_block: &Path, ticks_per_s: u64, probes: &mut Probes) -> HostBooks {
    let mut book = |name: &'static str, file: &str| match fs::read_to_string(proc.join(file)) {
        Ok(text) => Some(text),
        Err(error) => {
            probes.set(name, Status::of_io(&error), format!("/proc/{file} cannot be read: {error}"));
            None
        }
    };
    let stat = book("host_cpu", "stat");
    let diskstats = book("host_disk", "diskstats");
    let dev = book("host_network", "net/dev");
    let meminfo = book("host_memory", "meminfo");
    let vmstat = book("host_oom", "vmstat");
    let books = HostBooks {
        cpu: stat.as_deref().and_then(|text| cpu(text, ticks_per_s)),
        tasks_created: stat.as_deref().and_then(|text| number(text, "processes ")),
        disk: diskstats.as_deref().and_then(|text| disk(text, |name| is_own_disk(sys_block, name))),
        network: dev.as_deref().and_then(|text| network(text, |name| name != "lo")),
        memory_available_bytes: meminfo.as_deref().and_then(|text| number(text, "MemAvailable:")).map(|kb| kb * 1024),
        oom_kills: vmstat.as_deref().and_then(|text| number(text, "oom_kill ")),
    };
    for (name, file, read, understood) in [
        ("host_cpu", "stat", stat.is_some(), books.cpu.is_some() && books.tasks_created.is_some()),
        ("host_disk", "diskstats", diskstats.is_some(), books.disk.is_some()),
        ("host_network", "net/dev", dev.is_some(), books.network.is_some()),
        ("host_memory", "meminfo", meminfo.is_some(), books.memory_available_bytes.is_some()),
        ("host_oom", "vmstat", vmstat.is_some(), books.oom_kills.is_some()),
    ] {
        match (read, understood) {
            (true, true) => probes.ok(name),
            (true, false) => probes.set(name, Status::Broken, format!("/proc/{file} has an unknown shape")),
            (false, _) => {}
        }
    }
    books
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_and_idle_are_not_busy_and_guests_count_once() {
        let stat = "cpu  10 1 5 1000 200 2 3 4 9 0\ncpu0 10 1 5 1000 200 2 3 4 9 0\nprocesses 77\n";
        assert_eq!(cpu(stat, 100), Some(Cpu { user_ns: 110_000_000, system_ns: 100_000_000, steal_ns: 40_000_000 }));
        assert_eq!(number(stat, "processes "), Some(77));
    }

    #[test]
    fn an_old_kernel_without_steal_and_a_broken_file_are_told_apart() {
        assert_eq!(cpu("cpu 1 0 1 0 0 0 0\n", 100).map(|cpu| cpu.steal_ns), Some(0));
        assert_eq!(cpu("cpu 1 0 x\n", 100), None);
        assert_eq!(cpu("", 100), None);
    }

    #[test]
    fn only_whole_disks_count() {
        let diskstats = "   8 0 sda 100 0 2000 1 50 0 1000 1 0 0 0 0 0 0 0 0 0\n   8 1 sda1 90 0 1900 1 50 0 900 1 0 0 0\n 253 0 dm-0 9 0 9 9 9 0 9 9 0 0 0\n";
        assert_eq!(disk(diskstats, |name| name == "sda"), Some(Traffic { in_bytes: 1_024_000, out_bytes: 512_000 }));
        assert_eq!(disk("8 0 sda 1 2\n", |_| true), None);
    }

    #[test]
    fn loopback_is_no_network() {
        let dev = "Inter-| Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n";
        assert_eq!(network(dev, |name| name != "lo"), Some(Traffic { in_bytes: 100, out_bytes: 200 }));
    }

    #[test]
    fn a_missing_file_is_absent_and_says_why() {
        let mut probes = Probes::default();
        let books = read_under(Path::new("/nonexistent"), Path::new("/nonexistent"), 100, &mut probes);
        assert_eq!(books, HostBooks::default());
        assert_eq!(probes.status("host_cpu"), Some(Status::Broken));
    }
}
