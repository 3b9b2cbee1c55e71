//! Loads the object into the kernel and attaches its programs.
//!
//! The core (the task iterator, births and deaths) must load, or there is no eBPF here. Every other program that is
//! refused costs its own columns and no more, and the refusal is kept with its reason.

use super::{
    Standing,
    object::ObjectError,
    offsets::{Resolved, resolve},
};
use crate::coverage::Status;
use aya::{
    Btf, Ebpf, EbpfLoader,
    programs::{BtfTracePoint, FExit, Iter, ProgramError},
};
use node_agent_ebpf::{ABSENT, Offsets, counter};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("NODE_AGENT_EBPF_OBJECT"));

/// Name of the iterator's program.
pub(super) const ITERATOR: &str = "tasks";
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

pub(super) fn failed(name: &'static str) -> impl Fn(ProgramError) -> ObjectError {
    move |source| ObjectError::Program { name, source: Box::new(source) }
}

fn tracepoint(ebpf: &mut Ebpf, name: &'static str, of: &str, btf: &Btf) -> Result<(), ObjectError> {
    let program = ebpf.program_mut(name).ok_or(ObjectError::Incomplete(name))?;
    let program: &mut BtfTracePoint = program.try_into().map_err(failed(name))?;
    program.load(of, btf).map_err(failed(name))?;
    program.attach().map_err(failed(name))?;
    Ok(())
}

fn at_return(ebpf: &mut Ebpf, name: &'static str, of: &str, btf: &Btf) -> Result<(), ObjectError> {
    let program = ebpf.program_mut(name).ok_or(ObjectError::Incomplete(name))?;
    let program: &mut FExit = program.try_into().map_err(failed(name))?;
    program.load(of, btf).map_err(failed(name))?;
    program.attach().map_err(failed(name))?;
    Ok(())
}

fn network(ebpf: &mut Ebpf, resolved: &Resolved, btf: &Btf) -> Result<(), ObjectError> {
    if resolved.has_sock_lengths {
        return LENGTHS.into_iter().try_for_each(|(name, of)| tracepoint(ebpf, name, of, btf));
    }
    RETURNS.into_iter().try_for_each(|(name, of)| at_return(ebpf, name, of, btf))?;
    let (name, of) = SENT_PAGE;
    if btf.id_by_type_name_kind(of, aya_obj::btf::BtfKind::Func).is_ok() {
        at_return(ebpf, name, of, btf)?;
    }
    Ok(())
}

fn status_of(error: &ObjectError) -> Status {
    if error.is_denied() { Status::Denied } else { Status::Unsupported }
}

/// What the kernel's structs alone allow to be measured.
fn standing_of(offsets: &Offsets, resolved: &Resolved) -> Standing {
    let mut standing = Standing::default();
    let counters = offsets.task_counters;
    let has = |offsets: &[u32]| !offsets.contains(&ABSENT);
    let mut column = |probe: &str, has: bool, needs: &str| {
        if !has {
            standing.lacks(probe, Status::Unsupported, format!("the kernel needs {needs}"));
        }
        has
    };
    let two = |first: usize| has(&counters[first..first + 2]);
    let mut measured = super::Measured { tasks: true, births: true, ..super::Measured::default() };
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
    measured.blocked_io = has(&[offsets.task_delays, offsets.delays_blkio]);
    standing.measured = measured;
    if !measured.blocked_io {
        let reason =
            "the kernel keeps no delays unless told so: sysctl kernel.task_delayacct=1, for tasks that begin after it";
        standing.lacks("blocked_io", Status::NotApplicable, reason);
    }
    if !(measured.memory && resolved.exit_shows_memory) {
        let reason = "before Linux 6.16 a process's memory is gone when its exit is shown: only processes that live at a reading have a peak";
        standing.lacks("memory_peak_of_the_dead", Status::Unsupported, reason);
    }
    standing
}

/// What is loaded and attached, and what that measures.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    pub(super) standing: Standing,
}

/// Loads and attaches everything; activity counts from here on.
pub(super) fn load(count_from_boottime_ns: u64) -> Result<Loaded, ObjectError> {
    if OBJECT.is_empty() {
        return Err(ObjectError::NotBuilt);
    }
    let resolved = resolve(count_from_boottime_ns)?;
    tracing::debug!(offsets = ?resolved.offsets, "layout of this kernel");
    let btf = Btf::from_sys_fs()?;
    let mut ebpf =
        EbpfLoader::new().btf(Some(&btf)).override_global("OFFSETS", &resolved.offsets, true).load(OBJECT)?;

    let iterator = ebpf.program_mut(ITERATOR).ok_or(ObjectError::Incomplete(ITERATOR))?;
    let iterator: &mut Iter = iterator.try_into().map_err(failed(ITERATOR))?;
    iterator.load("task", &btf).map_err(failed(ITERATOR))?;
    tracepoint(&mut ebpf, "process_free", "sched_process_free", &btf)?;
    tracepoint(&mut ebpf, "process_fork", "sched_process_fork", &btf)?;
    tracepoint(&mut ebpf, "process_exec", "sched_process_exec", &btf)?;
    if resolved.exit_shows_memory {
        tracepoint(&mut ebpf, "process_exit", "sched_process_exit", &btf)?;
    }

    let mut standing = standing_of(&resolved.offsets, &resolved);
    let mut optional = |probe: &str, attached: Result<(), ObjectError>| {
        if let Err(error) = &attached {
            standing.lacks(probe, status_of(error), error.to_string());
        }
        attached.is_ok()
    };
    let victims = if resolved.has_mark_victim {
        tracepoint(&mut ebpf, "mark_victim", "mark_victim", &btf)
    } else {
        Err(ObjectError::Incomplete("understood shape of the tracepoint mark_victim on this kernel"))
    };
    let oom_kills = optional("oom_kills", victims);
    let reclaim = tracepoint(&mut ebpf, "direct_reclaim", "mm_vmscan_direct_reclaim_begin", &btf);
    let direct_reclaim = optional("direct_reclaim", reclaim);
    let network = optional("network", network(&mut ebpf, &resolved, &btf));
    standing.measured = super::Measured { oom_kills, direct_reclaim, network, ..standing.measured };
    standing.lacks("syscall_classes", Status::NotApplicable, "not asked for");
    Ok(Loaded { ebpf, standing })
}
