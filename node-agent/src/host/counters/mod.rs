//! The kernel's counters of the whole host, from `/proc`: eight small files per heartbeat.
//!
//! Each file stands alone: one that cannot be read is absent and names its reason, and the others stay.

mod cpu;
mod disk;
mod network;
mod paging;
mod pressure;
mod rdma;

pub use cpu::Cpu;
pub use disk::Disk;
pub use network::Traffic;

use crate::coverage::{Capabilities, Status};
use heartbeat::wire;
use std::{fs, path::Path};

/// Counters of the whole host, cumulative since boot; absent is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// From `/proc/stat`.
    pub cpu: Option<Cpu>,
    /// From `/proc/diskstats`.
    pub disk: Option<Disk>,
    /// From `/proc/1/net/dev`.
    pub network: Option<Traffic>,
    /// From `/sys/class/infiniband`: what went past the sockets.
    pub rdma: Option<Traffic>,
    /// `processes` of `/proc/stat`: every fork and clone.
    pub tasks_created: Option<u64>,
    /// `ctxt` of `/proc/stat`.
    pub context_switches: Option<u64>,
    /// `oom_kill` of `/proc/vmstat`.
    pub oom_kills: Option<u64>,
    /// `pgmajfault` of `/proc/vmstat`.
    pub major_faults: Option<u64>,
    /// `pgsteal_direct` of `/proc/vmstat`.
    pub direct_reclaim_pages: Option<u64>,
    /// `pswpin` and `pswpout` of `/proc/vmstat`.
    pub swap_pages: Option<u64>,
    /// `MemAvailable` of `/proc/meminfo`, in bytes, now.
    pub memory_available_bytes: Option<u64>,
    /// From `/proc/pressure`.
    pub pressure: Option<wire::Pressure>,
}

impl HostCounters {
    /// As the contract has it. What the agent itself sent and received is left to the exporter.
    #[must_use]
    pub fn to_wire(&self) -> wire::HostCounters {
        wire::HostCounters {
            cpu_busy_ns: self.cpu.map(|cpu| cpu.user_ns.saturating_add(cpu.system_ns)),
            cpu_user_ns: self.cpu.map(|cpu| cpu.user_ns),
            cpu_system_ns: self.cpu.map(|cpu| cpu.system_ns),
            cpu_steal_ns: self.cpu.map(|cpu| cpu.steal_ns),
            cpu_iowait_ns: self.cpu.map(|cpu| cpu.iowait_ns),
            disk_read_bytes: self.disk.map(|disk| disk.read_bytes),
            disk_written_bytes: self.disk.map(|disk| disk.written_bytes),
            disk_reads: self.disk.map(|disk| disk.reads),
            disk_writes: self.disk.map(|disk| disk.writes),
            network_received_bytes: self.network.map(|network| network.in_bytes),
            network_sent_bytes: self.network.map(|network| network.out_bytes),
            tasks_created: self.tasks_created,
            context_switches: self.context_switches,
            oom_kills: self.oom_kills,
            major_faults: self.major_faults,
            direct_reclaim_pages: self.direct_reclaim_pages,
            swap_pages: self.swap_pages,
            memory_available_bytes: self.memory_available_bytes,
            pressure: self.pressure,
            rdma_received_bytes: self.rdma.map(|rdma| rdma.in_bytes),
            rdma_sent_bytes: self.rdma.map(|rdma| rdma.out_bytes),
            ..wire::HostCounters::default()
        }
    }
}

/// One `name value` or `name: value` line.
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix([' ', ':'])?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    })
}

/// Reads what the host's interfaces moved, and says how that went. `hidden_host` says why process 1 is not the host's, if it is not: the counters are
/// found through it.
///
/// To be read before the tasks' counters, and shortly: a task has its bytes when it hands them to the kernel, and an interface when they leave. What is sent at
/// that moment is then the task's in this interval and the interface's in the next one, in which the sweeper knows it for explained; the other
/// way round nobody would account for it. On an emulated CPU, where a sample takes 15 times as long, a scrape of an exporter fell into that gap twice in twenty minutes.
#[must_use]
pub fn traffic(hidden_host: Option<&str>, capabilities: &mut Capabilities) -> Option<Traffic> {
    traffic_under(Path::new("/proc"), Path::new("/sys"), hidden_host, capabilities)
}

fn traffic_under(
    proc: &Path,
    sys: &Path,
    hidden_host: Option<&str>,
    capabilities: &mut Capabilities,
) -> Option<Traffic> {
    const NAME: &str = "host_network";
    if let Some(reason) = hidden_host {
        capabilities.set(NAME, Status::Denied, reason);
        return None;
    }
    let dev = file(proc, "1/net/dev", &[NAME], capabilities)?;
    let traffic = network::of_the_host(&dev, proc, sys);
    match traffic {
        Some(_) => capabilities.ok(NAME),
        None => capabilities.set(NAME, Status::Broken, unknown_shape("1/net/dev")),
    }
    traffic
}

/// A file's text; if it cannot be read, these capabilities say so.
fn file(proc: &Path, file: &str, counters: &[&'static str], capabilities: &mut Capabilities) -> Option<String> {
    match fs::read_to_string(proc.join(file)) {
        Ok(text) => Some(text),
        Err(error) => {
            for name in counters {
                capabilities.set(name, Status::of_io(&error), format!("/proc/{file} cannot be read: {error}"));
            }
            None
        }
    }
}

fn unknown_shape(file: &str) -> String {
    format!("/proc/{file} has an unknown shape")
}

/// Reads every other file and says how each read went. `network` is what [`traffic`] was.
#[must_use]
pub fn read(network: Option<Traffic>, capabilities: &mut Capabilities) -> HostCounters {
    let ticks_per_s = rustix::param::clock_ticks_per_second();
    let others = read_under(Path::new("/proc"), Path::new("/sys"), ticks_per_s, capabilities);
    HostCounters { network, ..others }
}

fn read_under(proc: &Path, sys: &Path, ticks_per_s: u64, capabilities: &mut Capabilities) -> HostCounters {
    let mut file = |name: &str, counters: &[&'static str]| file(proc, name, counters, capabilities);
    let stat = file("stat", &["host_cpu"]);
    let diskstats = file("diskstats", &["host_disk"]);
    let meminfo = file("meminfo", &["host_memory"]);
    let vmstat = file("vmstat", &["host_paging", "host_swap", "host_oom"]);
    let cpu = stat.as_deref().map(|text| cpu::parse(text, ticks_per_s)).unwrap_or_default();
    let paging = vmstat.as_deref().map(paging::parse).unwrap_or_default();
    let sys_block = sys.join("block");
    let counters = HostCounters {
        cpu: cpu.cpu,
        tasks_created: cpu.tasks_created,
        context_switches: cpu.context_switches,
        disk: diskstats.as_deref().and_then(|text| disk::parse(text, |name| disk::is_own_disk(&sys_block, name))),
        network: None,
        memory_available_bytes: meminfo.as_deref().and_then(|text| number(text, "MemAvailable")).map(|kb| kb * 1024),
        oom_kills: paging.oom_kills,
        major_faults: paging.major_faults,
        direct_reclaim_pages: paging.direct_reclaim_pages,
        swap_pages: paging.swap_pages,
        pressure: pressure::read(proc, capabilities),
        rdma: rdma::read(&sys.join("class/infiniband"), capabilities),
    };
    let whole_stat = counters.cpu.is_some() && counters.tasks_created.is_some() && counters.context_switches.is_some();
    let whole_paging = counters.major_faults.is_some() && counters.direct_reclaim_pages.is_some();
    for (name, read, understood, otherwise, reason) in [
        ("host_cpu", stat.is_some(), whole_stat, Status::Broken, unknown_shape("stat")),
        ("host_disk", diskstats.is_some(), counters.disk.is_some(), Status::Broken, unknown_shape("diskstats")),
        (
            "host_memory",
            meminfo.is_some(),
            counters.memory_available_bytes.is_some(),
            Status::Broken,
            unknown_shape("meminfo"),
        ),
        ("host_paging", vmstat.is_some(), whole_paging, Status::Broken, unknown_shape("vmstat")),
        (
            "host_swap",
            vmstat.is_some(),
            counters.swap_pages.is_some(),
            Status::NotApplicable,
            "the kernel was built without CONFIG_SWAP".to_owned(),
        ),
        (
            "host_oom",
            vmstat.is_some(),
            counters.oom_kills.is_some(),
            Status::Unsupported,
            "the kernel counts such kills from Linux 4.13 on".to_owned(),
        ),
    ] {
        match (read, understood) {
            (true, true) => capabilities.ok(name),
            (true, false) => capabilities.set(name, otherwise, reason),
            (false, _) => {}
        }
    }
    counters
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_absent_and_says_why() {
        let mut capabilities = Capabilities::default();
        let nowhere = Path::new("/nonexistent");
        let counters = read_under(nowhere, nowhere, 100, &mut capabilities);
        assert_eq!(counters, HostCounters::default());
        assert_eq!(traffic_under(nowhere, nowhere, None, &mut capabilities), None);
        assert_eq!(counters.to_wire(), wire::HostCounters::default());
        for capability in
            ["host_cpu", "host_disk", "host_network", "host_memory", "host_paging", "host_swap", "host_oom"]
        {
            assert_eq!(capabilities.status(capability), Some(Status::Broken), "{capability}");
        }
        assert_eq!(capabilities.status("pressure"), Some(Status::Unsupported));
        assert_eq!(capabilities.status("rdma"), Some(Status::NotApplicable));
    }

    #[test]
    fn what_rdma_adapters_moved_is_in_the_heartbeat() {
        let counters = HostCounters { rdma: Some(Traffic { in_bytes: 5, out_bytes: 7 }), ..HostCounters::default() };
        let counters = counters.to_wire();
        assert_eq!((counters.rdma_received_bytes, counters.rdma_sent_bytes), (Some(5), Some(7)));
    }

    #[test]
    fn a_name_is_no_prefix_of_another() {
        assert_eq!(number("pgmajfaults 3\npgmajfault 4\n", "pgmajfault"), Some(4));
        assert_eq!(number("MemAvailable:   12 kB\n", "MemAvailable"), Some(12));
        assert_eq!(number("MemAvailable x\n", "MemAvailable"), None);
    }

    #[test]
    fn this_host_has_these_counters() {
        let mut capabilities = Capabilities::default();
        let traffic = traffic(None, &mut capabilities);
        let counters = read(traffic, &mut capabilities);
        assert_eq!((counters.network, traffic.is_some()), (traffic, true));
        for capability in ["host_cpu", "host_disk", "host_network", "host_memory", "host_paging"] {
            assert_eq!(capabilities.status(capability), Some(Status::Ok), "{capability}");
        }
        assert!(counters.context_switches > Some(0));
    }

    #[test]
    fn the_network_is_that_of_the_hosts_first_process_or_absent() {
        let proc = tempfile::tempdir().unwrap();
        let dev = |bytes| format!("a\nb\neth0: {bytes} 1 0 0 0 0 0 0 {bytes} 1 0 0 0 0 0 0\n");
        for (process, bytes) in [("1", 700), ("self", 3)] {
            fs::create_dir_all(proc.path().join(process).join("net")).unwrap();
            fs::write(proc.path().join(process).join("net/dev"), dev(bytes)).unwrap();
        }
        std::os::unix::fs::symlink("self/net", proc.path().join("net")).unwrap();
        let mut capabilities = Capabilities::default();
        let mut network = |hidden_host| {
            let traffic = traffic_under(proc.path(), Path::new("/nonexistent"), hidden_host, &mut capabilities);
            (traffic.map(|traffic| traffic.in_bytes), capabilities.status("host_network"))
        };
        assert_eq!(network(None), (Some(700), Some(Status::Ok)));
        assert_eq!(network(Some("why")), (None, Some(Status::Denied)));
    }
}
