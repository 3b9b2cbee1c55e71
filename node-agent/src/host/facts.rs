//! What the host is: read once at start, since none of it changes while the kernel runs (CPUs and memory that come and
//! go are seen at the agent's next start).

use std::{fs, thread};

/// What the node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The kernel's node name.
    pub hostname: String,
    /// As `uname -r` prints it.
    pub kernel_release: String,
    /// As `uname -m` prints it.
    pub architecture: String,
    /// CPUs that the agent can see.
    pub cpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// A GPU is on the PCI bus.
    pub gpu_present: bool,
}

impl Facts {
    /// Reads them; what is on the bus has been looked at already.
    #[must_use]
    pub fn read(gpu_present: bool) -> Self {
        let uname = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Self {
            hostname: text(uname.nodename()),
            kernel_release: text(uname.release()),
            architecture: text(uname.machine()),
            cpus: online_cpus(),
            memory_bytes: {
                let info = rustix::system::sysinfo();
                let unit = u64::from(info.mem_unit.max(1));
                info.totalram.saturating_mul(unit)
            },
            gpu_present,
        }
    }
}

/// Counts the `cpuN` lines of `/proc/stat`, which has one for each CPU online; the agent's own affinity does not matter.
fn online_cpus() -> u32 {
    let lines = fs::read_to_string("/proc/stat")
        .map_or(0, |stat| stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count());
    let count = if lines > 0 { lines } else { thread::available_parallelism().map_or(1, usize::from) };
    u32::try_from(count).unwrap_or(u32::MAX)
}
