//! Loads the object into the kernel and attaches its programs.
//!
//! The core (the task iterator, forks and exits) must load, or there is no eBPF here. Every other program that is
//! refused costs its own columns and no more, and the refusal is kept with its reason.

use super::{
    Wanted, bpf,
    error::in_words,
    offsets::{OffsetsError, Resolved, resolve},
    syscalls,
};
use crate::{
    coverage::Status,
    model::{Measured, Moment, Statuses},
};
use aya::{
    Btf, BtfError, Ebpf, EbpfError, EbpfLoader,
    maps::{Array, MapError},
    programs::{BtfTracePoint, FExit, Iter, Program, ProgramError, RawTracePoint},
};
use node_agent_ebpf::{ABSENT, Offsets, counter};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("NODE_AGENT_EBPF_OBJECT"));

/// Counts system calls.
const SYSCALL: &str = "syscall";
const ITERATOR: &str = "tasks";
/// Lines of the verifier's log that say why it refuses a program.
const VERIFIER_LINES: usize = 6;
/// Network, from Linux 6.3 on: program and tracepoint.
const LENGTHS: [(&str, &str); 2] = [("sent", "sock_send_length"), ("received", "sock_recv_length")];
/// Network, before that: program and function.
const RETURNS: [(&str, &str); 4] = [
    ("sent4", "inet_sendmsg"),
    ("sent6", "inet6_sendmsg"),
    ("received4", "inet_recvmsg"),
    ("received6", "inet6_recvmsg"),
];
/// Likewise; gone since Linux 6.5.
const SENT_PAGE: (&str, &str) = ("sent_page", "inet_sendpage");

/// `ENOTSUPP`, a number of the kernel's own: <https://github.com/torvalds/linux/blob/v6.1/include/linux/errno.h#L27>
const NOT_SUPPORTED: i32 = 524;

/// Why the object does not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachError {
    #[error("this agent was built without its programs for the kernel (BPF_CARGO=none)")]
    NotBuilt,
    #[error(transparent)]
    Offsets(#[from] OffsetsError),
    #[error("the kernel's type information is not understood: {0}")]
    Btf(#[from] BtfError),
    #[error("the object does not load: {0}")]
    Load(#[from] EbpfError),
    #[error("program {name} does not load: {source}")]
    Program { name: &'static str, source: Box<ProgramError> },
    #[error("the kernel's verifier refuses program {name}: {last_words}")]
    Verifier { name: &'static str, last_words: String },
    #[error("program {name} does not attach: {source}")]
    Attach { name: &'static str, source: std::io::Error },
    #[error("the embedded object has no {0}")]
    Incomplete(&'static str),
    #[error(
        "an Arm kernel before Linux 6.4 lets no program run at the return of a function; the host's own counters serve"
    )]
    NoReturns,
    #[error("this kernel has no {0}")]
    Missing(&'static str),
    #[error("a map of the object cannot be used: {0}")]
    Map(#[from] MapError),
}

impl AttachError {
    /// Whether the kernel could and only the agent may not.
    pub(super) fn is_denied(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            if kind == Some(std::io::ErrorKind::PermissionDenied) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

fn failed(name: &'static str) -> impl Fn(ProgramError) -> AttachError {
    move |source| {
        let log = match &source {
            ProgramError::LoadError { verifier_log, .. } => verifier_log.to_string(),
            _ => String::new(),
        };
        // Its log retells the program; why it refuses comes last, before the statistics.
        let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(VERIFIER_LINES)..).unwrap_or_default();
        if last.is_empty() {
            return AttachError::Program { name, source: Box::new(source) };
        }
        AttachError::Verifier { name, last_words: last.join(" | ") }
    }
}

/// A program and what keeps it attached.
pub(super) struct Attached {
    name: String,
    pub(super) program: OwnedFd,
    pub(super) link: Option<OwnedFd>,
}

impl Attached {
    /// As it was handed over.
    pub(super) fn new(name: String, program: OwnedFd, link: OwnedFd) -> Self {
        Self { name, program, link: Some(link) }
    }

    /// Its name in the object.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The capability that depends on it alone.
    pub(super) fn capability(&self) -> Option<&'static str> {
        let serves_network = LENGTHS.iter().chain(&RETURNS).chain([&SENT_PAGE]).any(|(name, _)| *name == self.name);
        match self.name.as_str() {
            SYSCALL => Some("syscall_classes"),
            _ if serves_network => Some("network"),
            _ => None,
        }
    }

    /// Attaches or detaches it; takes no right (see [`super::bpf`]).
    pub(super) fn set(&mut self, attached: bool) -> std::io::Result<()> {
        if !attached {
            self.link = None;
        } else if self.link.is_none() {
            self.link = Some(bpf::attach(self.program.as_fd(), raw_tracepoint(&self.name))?);
        }
        Ok(())
    }
}

/// Where a program belongs that was not loaded for one place.
fn raw_tracepoint(name: &str) -> Option<&'static std::ffi::CStr> {
    (name == SYSCALL).then_some(c"sys_enter")
}

/// Programs on their way into the kernel.
struct Loading {
    ebpf: Ebpf,
    btf: Btf,
    attached: Vec<Attached>,
}

impl Loading {
    fn program<'a, P>(&'a mut self, name: &'static str) -> Result<(&'a mut P, &'a Btf), AttachError>
    where
        &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
    {
        let program = self.ebpf.program_mut(name).ok_or(AttachError::Incomplete(name))?;
        Ok((program.try_into().map_err(failed(name))?, &self.btf))
    }

    fn attach(&mut self, name: &'static str, to: Option<&std::ffi::CStr>) -> Result<(), AttachError> {
        let attached = |source| AttachError::Attach { name, source };
        let program = descriptor(&self.ebpf, name)?;
        let link = bpf::attach(program, to).map_err(attached)?;
        let program = program.try_clone_to_owned().map_err(attached)?;
        self.attached.push(Attached { name: name.to_owned(), program, link: Some(link) });
        Ok(())
    }

    fn tracepoint(&mut self, name: &'static str, of: &str) -> Result<(), AttachError> {
        let (program, btf) = self.program::<BtfTracePoint>(name)?;
        program.load(of, btf).map_err(failed(name))?;
        self.attach(name, None)
    }

    fn at_return(&mut self, name: &'static str, of: &str) -> Result<(), AttachError> {
        let (program, btf) = self.program::<FExit>(name)?;
        program.load(of, btf).map_err(failed(name))?;
        self.attach(name, None).map_err(|error| match error {
            AttachError::Attach { source, .. } if source.raw_os_error() == Some(NOT_SUPPORTED) => {
                AttachError::NoReturns
            }
            error => error,
        })
    }

    fn network(&mut self, resolved: &Resolved) -> Result<(), AttachError> {
        if resolved.has_sock_lengths {
            return LENGTHS.into_iter().try_for_each(|(name, of)| self.tracepoint(name, of));
        }
        RETURNS.into_iter().try_for_each(|(name, of)| self.at_return(name, of))?;
        let (name, of) = SENT_PAGE;
        if resolved.has_inet_sendpage { self.at_return(name, of) } else { Ok(()) }
    }

    fn syscall_classes(&mut self) -> Result<(), AttachError> {
        let classes = self.ebpf.map_mut("CLASSES").ok_or(AttachError::Incomplete("CLASSES"))?;
        let mut classes: Array<_, u64> = classes.try_into()?;
        for (index, class) in (0..).zip(syscalls::classes()) {
            classes.set(index, class as u64, 0)?;
        }
        let (program, _) = self.program::<RawTracePoint>(SYSCALL)?;
        program.load().map_err(failed(SYSCALL))?;
        self.attach(SYSCALL, raw_tracepoint(SYSCALL))
    }
}

fn descriptor<'a>(ebpf: &'a Ebpf, name: &'static str) -> Result<BorrowedFd<'a>, AttachError> {
    let program = ebpf.program(name).ok_or(AttachError::Incomplete(name))?;
    Ok(program.fd().map_err(failed(name))?.as_fd())
}

fn status_of(error: &AttachError) -> Status {
    if error.is_denied() { Status::Denied } else { Status::Unsupported }
}

/// What the kernel's structs alone allow to be measured.
fn statuses_of(offsets: &Offsets, resolved: &Resolved) -> Statuses {
    let mut statuses = Statuses::default();
    let counters = offsets.task_counters;
    let has = |offsets: &[u32]| !offsets.contains(&ABSENT);
    let mut column = |capability: &str, has: bool, needs: &str| {
        if !has {
            statuses.lacks(capability, Status::Unsupported, format!("the kernel needs {needs}"));
        }
        has
    };
    let two = |first: usize| has(&counters[first..first + 2]);
    let mut measured = Measured { tasks: true, process_events: true, execs: true, ..Measured::default() };
    measured.cpu_split = column("cpu_split", two(counter::USER_NS), "utime and stime in its task_struct");
    measured.run_queue = column("run_queue_delay", has(&[counters[counter::RUN_QUEUE_NS]]), "CONFIG_SCHED_INFO");
    measured.switches = column("switches", two(counter::VOLUNTARY_SWITCHES), "nvcsw and nivcsw in its task_struct");
    measured.faults = column("faults", two(counter::MINOR_FAULTS), "min_flt and maj_flt in its task_struct");
    measured.disk = column("disk_io", two(counter::DISK_READ_BYTES), "CONFIG_TASK_IO_ACCOUNTING");
    measured.calls = column("call_counts", two(counter::READ_CALLS), "CONFIG_TASK_XACCT");
    let memory = [offsets.mm_hiwater_rss, offsets.mm_rss];
    measured.memory = column("memory_peak", has(&memory), "a known shape of its mm_struct");
    let ends = [offsets.task_exit_code, offsets.signal_flags, offsets.signal_group_exit_code];
    measured.failures = column("exit_status", has(&ends), "exit codes in its task_struct and signal_struct");
    let cgroups = [offsets.task_cgroups, offsets.css_set_v2, offsets.cgroup_kn, offsets.kn_id];
    measured.cgroups = column("cgroups", has(&cgroups), "CONFIG_CGROUPS; every process counts as workload");
    let states = [offsets.task_state, offsets.task_last_arrival];
    measured.states = column("task_states", has(&states), "the state and CONFIG_SCHED_INFO in its task_struct");
    let call = [offsets.registers_call, offsets.task_state, offsets.task_last_arrival];
    let needs = "Linux 5.15, or a known shape of its stacks, and CONFIG_SCHED_INFO";
    measured.timed_waits = column("timed_waits", has(&call) && has(&offsets.registers_arguments), needs);
    measured.blocked_io = has(&[offsets.task_delays, offsets.delays_blkio]);
    statuses.measured = measured;
    if !measured.blocked_io {
        let reason =
            "the kernel keeps no delays unless told so: sysctl kernel.task_delayacct=1, for tasks that begin after it";
        statuses.lacks("blocked_io", Status::NotApplicable, reason);
    }
    if !(measured.memory && resolved.exit_shows_memory) {
        let reason = "before Linux 6.16 a process's memory is gone when its exit is shown: only processes that live at a sample have a peak";
        statuses.lacks("memory_peak_of_exited", Status::Unsupported, reason);
    }
    statuses
}

/// What is loaded and attached, and what that measures.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    pub(super) statuses: Statuses,
    /// Offsets of this kernel, for the log.
    pub(super) layout: String,
    pub(super) iterator: OwnedFd,
    /// Everything that is attached.
    pub(super) attached: Vec<Attached>,
}

/// Loads and attaches everything; activity counts from here on.
pub(super) fn load(wanted: &Wanted) -> Result<Loaded, AttachError> {
    if OBJECT.is_empty() {
        return Err(AttachError::NotBuilt);
    }
    // This process began before that, so that what it does itself is nobody's activity.
    let resolved = resolve(Moment::now().boottime_ns)?;
    let btf = Btf::from_sys_fs()?;
    let ebpf = EbpfLoader::new()
        .btf(Some(&btf))
        .override_global("OFFSETS", &resolved.offsets, true)
        .override_global("LINEAGE_OFFSETS", &resolved.lineage, true)
        .load(OBJECT)?;
    let mut loading = Loading { ebpf, btf, attached: Vec::new() };

    let (iterator, btf) = loading.program::<Iter>(ITERATOR)?;
    iterator.load("task", btf).map_err(failed(ITERATOR))?;
    let iterator = bpf::link_iterator(descriptor(&loading.ebpf, ITERATOR)?)
        .map_err(|source| AttachError::Attach { name: ITERATOR, source })?;
    loading.tracepoint("process_free", "sched_process_free")?;
    loading.tracepoint("process_fork", "sched_process_fork")?;
    loading.tracepoint("process_exec", "sched_process_exec")?;
    if resolved.exit_shows_memory {
        loading.tracepoint("process_exit", "sched_process_exit")?;
    }

    let mut statuses = statuses_of(&resolved.offsets, &resolved);
    let mut optional = |capability: &str, attached: Result<(), AttachError>| {
        if let Err(error) = &attached {
            statuses.lacks(capability, status_of(error), in_words(error));
        }
        attached.is_ok()
    };
    let victims = if resolved.has_mark_victim {
        loading.tracepoint("mark_victim", "mark_victim")
    } else {
        Err(AttachError::Missing("tracepoint mark_victim of an understood shape"))
    };
    let oom_kills = optional("oom_kills", victims);
    let reclaim = loading.tracepoint("direct_reclaim", "mm_vmscan_direct_reclaim_begin");
    let direct_reclaim = optional("direct_reclaim", reclaim);
    let network = optional("network", loading.network(&resolved));
    let syscalls = wanted.syscall_classes && optional("syscall_classes", loading.syscall_classes());
    statuses.measured = Measured { oom_kills, direct_reclaim, network, syscalls, ..statuses.measured };
    if !wanted.syscall_classes {
        statuses.lacks(
            "syscall_classes",
            Status::NotApplicable,
            "not asked for: syscall_classes = true switches it on",
        );
    }
    for capability in ["tracepoints", "taskstats"] {
        statuses.lacks(capability, Status::NotApplicable, "eBPF with type information serves for it");
    }
    let Loading { ebpf, attached, .. } = loading;
    Ok(Loaded { ebpf, statuses, layout: format!("{:?}", resolved.offsets), iterator, attached })
}
