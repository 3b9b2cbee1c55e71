//! Where the tasks' counters come from: the programs inside the kernel, or `/proc`.

use super::{CollectError, Mode, SamplerOptions};
use crate::{
    coverage::Status,
    kernel::{
        Wanted,
        error::ObjectError,
        fallback::{self, Fallback},
        object::Object,
    },
    model::Deltas,
};
use heartbeat::wire;

/// One of the two.
pub(super) enum TaskCounters {
    Ebpf(Box<Object>),
    Proc(Box<Fallback>),
}

impl TaskCounters {
    /// Starts what the mode asks for, and says why it is not eBPF; `hidden_host` is why the host's processes are not seen.
    ///
    /// # Errors
    /// If the mode asks for a part that the kernel refuses.
    pub(super) fn start(
        options: &SamplerOptions,
        hidden_host: Option<&str>,
    ) -> Result<(Self, Option<(Status, String)>), CollectError> {
        let wanted = Wanted { syscall_classes: options.syscall_classes };
        Ok(match options.mode {
            Mode::Tracepoints | Mode::Taskstats | Mode::Proc => {
                let fallback = Fallback::start(options.mode.needs());
                if let Some(reason) = fallback.refusal(options.mode.needs()) {
                    return Err(CollectError::Part(reason.to_owned()));
                }
                (Self::Proc(Box::new(fallback)), Some((Status::Unsupported, "switched off by configuration".into())))
            }
            // The task iterator shows the reader's own pid namespace, and events name processes by numbers of the host's.
            Mode::Ebpf if let Some(reason) = hidden_host => {
                return Err(ObjectError::Refused { reason: reason.to_owned(), denied: true }.into());
            }
            Mode::Auto if let Some(reason) = hidden_host => {
                let fallback = Fallback::start(fallback::Wanted { process_events: false, taskstats: false });
                (Self::Proc(Box::new(fallback)), Some((Status::Denied, reason.to_owned())))
            }
            Mode::Ebpf => (Self::Ebpf(Box::new(Object::load(&wanted)?)), None),
            Mode::Auto => match Object::load(&wanted) {
                Ok(object) => (Self::Ebpf(Box::new(object)), None),
                Err(error) => {
                    let status = if error.is_denied() { Status::Denied } else { Status::Unsupported };
                    let fallback = Fallback::start(fallback::Wanted { process_events: true, taskstats: true });
                    (Self::Proc(Box::new(fallback)), Some((status, error.to_string())))
                }
            },
        })
    }

    /// The source, as the contract names it.
    pub(super) fn source(&self) -> wire::Source {
        match self {
            Self::Ebpf(_) => wire::Source::Ebpf,
            Self::Proc(fallback) => fallback.source(),
        }
    }

    /// What the tasks did since the last sample.
    ///
    /// # Errors
    /// If they cannot be read this time.
    pub(super) fn read(&mut self) -> Result<Deltas, CollectError> {
        match self {
            Self::Ebpf(object) => Ok(object.read()?),
            Self::Proc(fallback) => fallback.read().map_err(CollectError::Proc),
        }
    }

    /// Whether it can be read with the rights that are left.
    pub(super) fn is_usable(&self) -> bool {
        match self {
            Self::Ebpf(object) => object.is_usable(),
            Self::Proc(fallback) => fallback.is_usable(),
        }
    }

    /// Detaches everything.
    pub(super) fn pause(&mut self) {
        match self {
            Self::Ebpf(object) => object.detach(),
            Self::Proc(fallback) => fallback.pause(),
        }
    }
}
