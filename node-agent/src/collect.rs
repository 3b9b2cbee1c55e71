//! One reading of everything that is measured: the tasks' books (from the kernel, or from `/proc`), the host's books, and
//! what could not be read.
//!
//! The collector refuses to guess: what a reading did not deliver is absent in it and has a probe that says why. Measured
//! without optimisation, with about 115 tasks: 1.4 to 1.8 ms of CPU time for a whole reading.

use crate::{
    coverage::{Probes, Status},
    host::{
        books::{self, HostBooks},
        cgroups::{Cgroups, Mounts},
        clock::Moment,
        facts::Facts,
    },
    kernel::{
        Ledger, Share, comm_text,
        fallback::Fallback,
        object::{Object, ObjectError},
    },
    workload::{Class, Names, Rows, Traits, classify},
};
use heartbeat::wire;
use std::{io, sync::Arc, time::Duration};
use workload_rules::Rules;

/// How the tasks' books are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// From the kernel if it allows, else from `/proc`.
    #[default]
    Auto,
    /// From the kernel or not at all.
    Ebpf,
    /// From `/proc`.
    Proc,
}

/// Settings of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorOptions {
    /// How the tasks' books are to be read.
    pub mode: Mode,
    /// How often the caller will read; each heartbeat says so.
    pub interval: Duration,
}

/// Why nothing can be collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The mode asks for eBPF, and the kernel refuses.
    #[error("eBPF was asked for and does not run: {0}; `collector = \"auto\"` would fall back to /proc")]
    Ebpf(#[from] ObjectError),
    /// Not even `/proc` can be read.
    #[error("/proc cannot be listed: {0}; is it mounted?")]
    Proc(#[source] io::Error),
}

enum Books {
    Ebpf(Box<Object>),
    Proc(Fallback),
}

/// Which columns of the rows hold a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// CPU time and who lives.
    pub tasks: bool,
    /// Storage traffic.
    pub disk: bool,
    /// Peaks of resident memory.
    pub memory_peak: bool,
    /// Forks, execs and exits.
    pub births: bool,
    /// Kills by the out-of-memory killer.
    pub oom_kills: bool,
}

/// One reading.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When it was taken.
    pub taken: Moment,
    /// When the rows' counters were zero; also since when this agent process observes.
    pub counters_since: Moment,
    /// Length of the configured interval.
    pub interval: Duration,
    /// What the host is.
    pub facts: Facts,
    /// The host's books.
    pub host: HostBooks,
    /// The workloads' books.
    pub rows: Rows,
    /// What the rows' keys mean.
    pub names: Names,
    /// Version of the rules that sorted the rows.
    pub rules_version: String,
    /// Which columns of the rows hold a measurement.
    pub measured: Measured,
    /// Where the rows come from.
    pub collector: wire::Collector,
    /// A verdict for each probe.
    pub probes: Probes,
    /// What was lost since `counters_since`, by name.
    pub drops: Vec<(&'static str, u64)>,
}

/// Reads everything, again and again.
pub struct Collector {
    books: Books,
    /// Why it is not eBPF.
    ebpf_refusal: Option<(Status, String)>,
    cgroups: Cgroups,
    facts: Facts,
    rules: Arc<Rules>,
    rows: Rows,
    names: Names,
    counters_since: Moment,
    interval: Duration,
    drops: Vec<(&'static str, u64)>,
    lost_readings: u64,
    probes: Probes,
}

impl Collector {
    /// Loads what the mode asks for and takes the baseline: the rows' counters are zero when this returns.
    ///
    /// # Errors
    /// See [`CollectError`].
    pub fn start(options: &CollectorOptions) -> Result<Self, CollectError> {
        let (mut books, ebpf_refusal) = match options.mode {
            Mode::Proc => {
                (Books::Proc(Fallback::default()), Some((Status::Unsupported, "switched off by configuration".into())))
            }
            Mode::Ebpf => (Books::Ebpf(Box::new(Object::load(Moment::now().boottime_ns)?)), None),
            Mode::Auto => match Object::load(Moment::now().boottime_ns) {
                Ok(object) => (Books::Ebpf(Box::new(object)), None),
                Err(error) => {
                    let status = if error.is_denied() { Status::Denied } else { Status::Unsupported };
                    (Books::Proc(Fallback::default()), Some((status, error.to_string())))
                }
            },
        };
        give_memory_back();
        let baseline = match &mut books {
            Books::Ebpf(object) => object.read()?,
            Books::Proc(fallback) => fallback.read().map_err(CollectError::Proc)?,
        };
        let mut collector = Self {
            books,
            ebpf_refusal,
            cgroups: Cgroups::new(Mounts::read()),
            facts: Facts::read(),
            rules: workload_rules::built_in(),
            rows: Rows::default(),
            names: Names::default(),
            counters_since: Moment::now(),
            interval: options.interval,
            drops: baseline.drops.clone(),
            lost_readings: 0,
            probes: Probes::default(),
        };
        // Who lives now has a row from the first heartbeat on, with empty sums.
        let living = baseline.shares.into_iter().filter(|(_, share)| share.live_threads > 0);
        let quiet = living.map(|(key, share)| {
            let peak_resident_bytes = share.totals.peak_resident_bytes;
            (key, Share { totals: node_agent_ebpf::Totals { peak_resident_bytes, ..Default::default() }, ..share })
        });
        collector.book(&Ledger { shares: quiet.collect(), paths: baseline.paths, ..Ledger::default() });
        let mut probes = Probes::default();
        let _ = books::read(&mut probes);
        collector.state(&mut probes, None);
        collector.probes = probes;
        tracing::info!(collector = collector.collector().as_str_name(), "measuring from here on");
        Ok(collector)
    }

    /// Where the tasks' books come from.
    #[must_use]
    pub fn collector(&self) -> wire::Collector {
        match self.books {
            Books::Ebpf(_) => wire::Collector::Ebpf,
            Books::Proc(_) => wire::Collector::Proc,
        }
    }

    /// What is measured and what is not, as of the last reading.
    #[must_use]
    pub fn probes(&self) -> Vec<wire::Probe> {
        self.probes.to_wire()
    }

    /// When the rows' counters were zero.
    #[must_use]
    pub fn counters_since(&self) -> Moment {
        self.counters_since
    }

    /// Reads everything. A part that cannot be read is absent in the reading and named by a probe.
    pub fn read(&mut self) -> Reading {
        let mut probes = Probes::default();
        let ledger = match &mut self.books {
            Books::Ebpf(object) => object.read().map_err(|error| error.to_string()),
            Books::Proc(fallback) => fallback.read().map_err(|error| format!("/proc cannot be listed: {error}")),
        };
        // The moment belongs to the tasks' books, which matter most; the host's follow within a millisecond.
        let taken = Moment::now();
        let failure = match ledger {
            Ok(ledger) => {
                self.drops.clone_from(&ledger.drops);
                self.book(&ledger);
                None
            }
            Err(failure) => {
                self.lost_readings += 1;
                Some(failure)
            }
        };
        let host = books::read(&mut probes);
        let measured = self.state(&mut probes, failure.as_deref());
        self.probes = probes.clone();
        let mut drops = self.drops.clone();
        drops.push(("lost_readings", self.lost_readings));
        Reading {
            taken,
            counters_since: self.counters_since,
            interval: self.interval,
            facts: self.facts.clone(),
            host,
            rows: self.rows.clone(),
            names: self.names.clone(),
            rules_version: self.rules.version.clone(),
            measured,
            collector: self.collector(),
            probes,
            drops,
        }
    }

    fn book(&mut self, ledger: &Ledger) {
        if let Books::Ebpf(object) = &self.books {
            let wanted = ledger.shares.keys().map(|key| (key.hierarchy, key.cgroup_id)).collect();
            self.cgroups.refresh(&wanted, |tree, id| object.cgroup_path(tree, id));
        }
        let knows_cgroups = self.knows_cgroups();
        self.rows.begin();
        for (key, share) in &ledger.shares {
            let path = match &ledger.paths {
                Some(paths) => paths.get(&key.cgroup_id).map(String::as_str),
                None if knows_cgroups => self.cgroups.path(key.hierarchy, key.cgroup_id),
                None => None,
            };
            let name = comm_text(&key.comm);
            let class = classify(
                &self.rules.housekeeping,
                &Traits {
                    name: &name,
                    parent: &comm_text(&key.parent_comm),
                    uid: key.uid,
                    is_kernel_thread: key.kernel_thread == 1,
                    is_own: key.own == 1,
                    cgroup_path: path,
                },
            );
            self.rows.book(class, path, &name, share);
        }
        for (class, totals) in [Class::Workload, Class::Kernel].into_iter().zip(ledger.rest) {
            if totals != node_agent_ebpf::Totals::default() {
                self.rows.book(class, None, "", &Share { totals, ..Share::default() });
            }
        }
        self.rows.end();
        self.names.refresh(&self.rules, self.rows.iter().map(|(_, key, _)| key));
    }

    fn knows_cgroups(&self) -> bool {
        match &self.books {
            Books::Ebpf(object) => object.has_cgroups(),
            Books::Proc(_) => true,
        }
    }

    /// Says for each probe of the tasks' books how it stands, and which columns hold a measurement.
    fn state(&self, probes: &mut Probes, failure: Option<&str>) -> Measured {
        let measured = match &self.books {
            Books::Ebpf(object) => Measured {
                tasks: true,
                disk: object.has_disk_bytes(),
                memory_peak: object.has_memory_peak(),
                births: true,
                oom_kills: object.oom_error.is_none(),
            },
            Books::Proc(fallback) => Measured {
                tasks: true,
                disk: fallback.has_disk_bytes,
                memory_peak: true,
                births: false,
                oom_kills: false,
            },
        };
        let (status, refusal) = self.ebpf_refusal.clone().unwrap_or((Status::Unsupported, String::new()));
        for name in ["tasks", "disk_io", "memory_peak", "memory_peak_of_the_dead", "cgroups"] {
            probes.ok(name);
        }
        for name in ["ebpf", "births", "short_lives", "oom_kills"] {
            if self.ebpf_refusal.is_some() { probes.set(name, status, refusal.clone()) } else { probes.ok(name) }
        }
        match &self.books {
            Books::Ebpf(object) => {
                if !measured.disk {
                    probes.set("disk_io", Status::Unsupported, "the kernel needs CONFIG_TASK_IO_ACCOUNTING");
                }
                if !measured.memory_peak {
                    probes.set("memory_peak", Status::Unsupported, "the kernel's mm_struct has an unknown shape");
                }
                if !object.has_memory_peak_of_the_dead() {
                    let reason = "before Linux 6.16 a process's memory is gone when its exit is shown: only processes that live at a reading have a peak";
                    probes.set("memory_peak_of_the_dead", Status::Unsupported, reason);
                }
                if let Some(error) = &object.oom_error {
                    let status = if error.is_denied() { Status::Denied } else { Status::Unsupported };
                    probes.set("oom_kills", status, error.to_string());
                }
            }
            Books::Proc(_) => {
                if !measured.disk {
                    let reason = "/proc/PID/io of other users' processes cannot be read without CAP_SYS_PTRACE";
                    probes.set("disk_io", Status::Denied, reason);
                }
                let reason = "/proc forgets a process when it ends";
                probes.set("memory_peak_of_the_dead", Status::Unsupported, reason);
            }
        }
        if !self.knows_cgroups() {
            probes.set(
                "cgroups",
                Status::Unsupported,
                "the kernel needs CONFIG_CGROUPS; every process counts as workload",
            );
        } else if !self.cgroups.any() {
            probes.set("cgroups", Status::NotApplicable, "no cgroup tree is mounted");
        }
        if self.facts.gpu_present {
            probes.set("gpu", Status::Unsupported, "a GPU is on the bus, and this version reads none");
        } else {
            probes.set("gpu", Status::NotApplicable, "no NVIDIA or AMD GPU is on the PCI bus");
        }
        match failure {
            None => measured,
            Some(failure) => {
                for name in ["tasks", "disk_io", "memory_peak", "births", "short_lives", "oom_kills"] {
                    probes.set(name, Status::Broken, failure);
                }
                Measured::default()
            }
        }
    }
}

/// Parsing the kernel's types takes far more memory, once, than everything after it: it goes back to the kernel.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call only hands unused pages of the allocator back.
    unsafe {
        libc::malloc_trim(0);
    }
}
