//! What a sampler is told, and why it does not begin.

use crate::{
    host::{gpu, runtime},
    kernel::{error::ObjectError, fallback},
    rules::RulesStore,
};
use std::{io, path::PathBuf, sync::Arc, time::Duration};

/// How the tasks' counters are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// From the kernel if it allows, else from `/proc`.
    #[default]
    Auto,
    /// From the kernel or not at all.
    Ebpf,
    /// From `/proc`, with forks by tracepoints that need no type information.
    Tracepoints,
    /// From `/proc`, with the kernel's records of exited tasks.
    Taskstats,
    /// From `/proc` alone.
    Proc,
}

impl Mode {
    /// What this mode cannot do without beside `/proc`.
    pub(super) const fn needs(self) -> fallback::Wanted {
        fallback::Wanted {
            process_events: matches!(self, Self::Tracepoints),
            taskstats: matches!(self, Self::Taskstats),
        }
    }
}

/// Settings of a sampler.
#[derive(Clone, Debug)]
pub struct SamplerOptions {
    /// How the tasks' counters are to be read.
    pub mode: Mode,
    /// How often the caller will read; each heartbeat says so.
    pub interval: Duration,
    /// Whether to count system calls by class, which costs every system call on this host a little.
    pub syscall_classes: bool,
    /// What the agent may cost, in millionths of the host's CPUs: costly samples come more rarely.
    pub cpu_ppm_of_host: u64,
    /// Whether to keep `CAP_SYS_PTRACE`, where the agent has it, when it drops its rights.
    pub keep_ptrace: bool,
    /// Where the host's files are.
    pub host_root: PathBuf,
    /// Where GPUs are looked for, and by what they are read.
    pub gpu: gpu::Options,
    /// Who is asked for names and owners of containers.
    pub runtime: runtime::Options,
    /// By which rules processes are judged.
    pub rules: Arc<RulesStore>,
}

/// Why nothing can be collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The mode asks for eBPF, and the kernel refuses.
    #[error("eBPF was asked for and does not run: {0}; `source = \"auto\"` would fall back to /proc")]
    Ebpf(#[from] ObjectError),
    /// The mode asks for a part that the kernel refuses.
    #[error("{0}; `source = \"auto\"` would do without")]
    Part(String),
    /// What was stopped does not begin again in this process.
    #[error("{0}; start the agent anew")]
    Resume(#[source] io::Error),
    /// Not even `/proc` can be read.
    #[error("/proc cannot be listed: {0}; is it mounted?")]
    Proc(#[source] io::Error),
}
