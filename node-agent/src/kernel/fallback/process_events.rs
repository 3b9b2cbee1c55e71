//! Forks, program starts and ends by raw tracepoints and helpers alone: for kernels whose type information cannot be read.
//!
//! No field of the kernel is read, so nothing has to be known about where it lies. CPU time, memory and storage are not seen this way.
//! Linux 4.17 or later, `CAP_BPF` and `CAP_PERFMON` (before 5.8: `CAP_SYS_ADMIN`).

use crate::{
    coverage::Status,
    kernel::{error::in_words, object::wait_for_programs},
};
use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{Array, HashMap, MapData, MapError},
    programs::{ProgramError, RawTracePoint, raw_trace_point::RawTracePointLink},
};
use node_agent_ebpf::process_events::{Counts, MAX_PROCESS_EVENTS, ProcessEventKey, control};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("NODE_AGENT_EBPF_PROCESS_EVENTS"));
const PROGRAMS: [(&str, &str); 3] =
    [("new_task", "task_newtask"), ("program_start", "sched_process_exec"), ("task_end", "sched_process_exit")];

/// Why they do not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessEventsError {
    #[error("this agent was built without its programs for the kernel (BPF_CARGO=none)")]
    NotBuilt,
    #[error("the tracepoints' object does not load: {0}")]
    Load(#[from] EbpfError),
    #[error("program {name} does not load or attach: {source}")]
    Program { name: &'static str, source: Box<ProgramError> },
    #[error("the embedded object has no {0}")]
    Incomplete(&'static str),
    #[error("a map of the tracepoints' object cannot be used: {0}")]
    Map(#[from] MapError),
}

impl ProcessEventsError {
    /// What it says about a capability.
    pub(super) fn status(&self) -> Status {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if error.downcast_ref::<std::io::Error>().is_some_and(|error| Status::of_io(error) == Status::Denied) {
                return Status::Denied;
            }
            cause = error.source();
        }
        Status::Unsupported
    }

    /// The error and its causes.
    pub(super) fn in_words(&self) -> String {
        in_words(self)
    }
}

/// The loaded programs. Dropping them detaches them.
pub(super) struct ProcessEvents {
    counted: HashMap<MapData, ProcessEventKey, Counts>,
    overflow: Array<MapData, Counts>,
    control: Array<MapData, u64>,
    buffer: u64,
    programs: Ebpf,
    links: Vec<RawTracePointLink>,
}

impl std::fmt::Debug for ProcessEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessEvents").field("attached", &self.links.len()).finish_non_exhaustive()
    }
}

fn failed(name: &'static str) -> impl Fn(ProgramError) -> ProcessEventsError {
    move |source| ProcessEventsError::Program { name, source: Box::new(source) }
}

impl ProcessEvents {
    /// Loads and attaches them. `only_v2`: the host has no cgroup tree of version 1, so that the kernel's helper tells the cgroup.
    pub(super) fn start(only_v2: bool) -> Result<Self, ProcessEventsError> {
        if OBJECT.is_empty() {
            return Err(ProcessEventsError::NotBuilt);
        }
        let mut programs = EbpfLoader::new().btf(None).load(OBJECT)?;
        for (name, _) in PROGRAMS {
            let program = programs.program_mut(name).ok_or(ProcessEventsError::Incomplete(name))?;
            let program: &mut RawTracePoint = program.try_into().map_err(failed(name))?;
            program.load().map_err(failed(name))?;
        }
        let mut map = |name| programs.take_map(name).ok_or(ProcessEventsError::Incomplete(name));
        let (counted, overflow) = (map("PROCESS_EVENTS")?.try_into()?, map("OVERFLOW")?.try_into()?);
        let mut control: Array<MapData, u64> = map("CONTROL")?.try_into()?;
        control.set(control::SHOWS_CGROUP, u64::from(only_v2), 0)?;
        let mut process_events = Self { counted, overflow, control, buffer: 0, programs, links: Vec::new() };
        process_events.attach()?;
        Ok(process_events)
    }

    /// Attaches them.
    pub(super) fn attach(&mut self) -> Result<(), ProcessEventsError> {
        for (name, tracepoint) in PROGRAMS {
            let program = self.programs.program_mut(name).ok_or(ProcessEventsError::Incomplete(name))?;
            let program: &mut RawTracePoint = program.try_into().map_err(failed(name))?;
            let link = program.attach(tracepoint).map_err(failed(name))?;
            self.links.push(program.take_link(link).map_err(failed(name))?);
        }
        Ok(())
    }

    /// Detaches them.
    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    /// Whether the maps can be used with the rights that are left.
    pub(super) fn is_usable(&self) -> bool {
        self.control.get(&control::BUFFER, 0).is_ok()
    }

    /// What happened since the last call, and what of it found no key.
    pub(super) fn take(&mut self) -> Result<(Vec<(ProcessEventKey, Counts)>, Counts), ProcessEventsError> {
        let old = self.buffer;
        self.buffer = 1 - old;
        self.control.set(control::BUFFER, self.buffer, 0)?;
        wait_for_programs();
        let keys: Vec<ProcessEventKey> = (self.counted.keys().take(2 * MAX_PROCESS_EVENTS as usize))
            .filter_map(Result::ok)
            .filter(|key| u64::from(key.buffer) == old)
            .collect();
        let mut taken = Vec::with_capacity(keys.len());
        for key in keys {
            let Ok(counts) = self.counted.get(&key, 0) else { continue };
            self.counted.remove(&key)?;
            taken.push((key, counts));
        }
        let index = u32::from(old == 1);
        let overflow = self.overflow.get(&index, 0)?;
        self.overflow.set(index, Counts::default(), 0)?;
        Ok((taken, overflow))
    }
}
