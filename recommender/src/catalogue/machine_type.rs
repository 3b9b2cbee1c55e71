//! What a machine type can do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a machine type can do, as its provider says. What it did not say is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineType {
    /// For example `m5.large`.
    pub name: String,
    /// Types of one family have the same processors: `m5`.
    pub family: String,
    /// What its processors execute.
    pub architecture: Architecture,
    /// What it runs on: a system may lack the drivers of another one.
    pub platform: Platform,
    /// vCPUs.
    pub vcpus: u32,
    /// How many vCPUs are one core of the processor.
    pub threads_per_core: Option<u32>,
    /// The clock that the processor sustains, in MHz.
    pub mhz: Option<u32>,
    /// Memory, in MiB; a system has some hundredths less of it for its processes.
    pub memory_mib: u64,
    /// GPUs and other accelerators.
    pub accelerators: Option<Vec<Accelerator>>,
    /// Disks of the host, in GiB altogether: what they hold is lost when the machine stops. 0 if it has none.
    pub local_disk_gib: Option<u64>,
    /// Whether its CPU use is limited over time.
    pub burst: Burst,
    /// Bytes a second over the network in one direction.
    pub network: Limits,
    /// Bytes a second to and from network disks.
    pub disk: Limits,
    /// Operations a second of network disks.
    pub disk_operations: Limits,
    /// Most network interfaces.
    pub interfaces: Option<u32>,
}

/// What a processor executes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Intel's and AMD's.
    X86_64,
    /// Arm's; Graviton and Axion among them.
    Arm64,
    /// Another one, in the provider's word.
    Other(String),
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Other(word) => word,
        })
    }
}

/// What a machine runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// A hypervisor of this name: `nitro`, `xen`, `kvm`.
    Hypervisor(String),
    /// None: the whole host is the machine's.
    BareMetal,
    /// The provider did not say.
    Unknown,
}

/// Accelerators of one model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Accelerator {
    /// In the provider's words: `NVIDIA T4`.
    pub model: String,
    /// How many.
    pub count: u32,
}

/// Whether a type's CPU use is limited over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Burst {
    /// It is not: all vCPUs may be used all of the time.
    Steady,
    /// What is used above the baseline is paid by credits, which are earned below it. A credit is one vCPU for a minute.
    Credits {
        /// Thousandths of a core that may be used all of the time, over all vCPUs.
        baseline_milli_cores: u64,
        /// Most credits that are kept, in milliseconds of one vCPU.
        most_kept_ms: u64,
    },
    /// It is, and nobody said where the baseline is; or it was not said whether it is.
    Unknown,
}

/// What may flow each second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// All of the time.
    pub baseline: Option<u64>,
    /// For some minutes.
    pub burst: Option<u64>,
}

impl MachineType {
    /// Memory, in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_mib.saturating_mul(1 << 20)
    }

    /// Thousandths of a core that all vCPUs are together.
    #[must_use]
    pub fn milli_cores(&self) -> u64 {
        u64::from(self.vcpus) * 1_000
    }

    /// How many thousandths of a core of this type do what so many of the other one do, rounded up, and never fewer: nothing is expected of a faster
    /// processor. `None` if that is not known: then they are of different families, and the clock or the threads of a core of one of them are not.
    #[must_use]
    pub fn doing(&self, milli_cores: u64, of: &Self) -> Option<u64> {
        if self.family == of.family {
            return Some(milli_cores);
        }
        let (from_mhz, to_mhz) = (u128::from(of.mhz?), u128::from(self.mhz.filter(|mhz| *mhz > 0)?));
        let (from_threads, to_threads) = (of.threads_per_core.filter(|threads| *threads > 0)?, self.threads_per_core?);
        let slower = u128::from(milli_cores) * from_mhz.max(to_mhz);
        let shared = (slower * u128::from(from_threads.max(to_threads))).div_ceil(to_mhz * u128::from(from_threads));
        u64::try_from(shared).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(family: &str, mhz: Option<u32>, threads_per_core: Option<u32>) -> MachineType {
        MachineType {
            name: format!("{family}.large"),
            family: family.to_owned(),
            architecture: Architecture::X86_64,
            platform: Platform::Unknown,
            vcpus: 2,
            threads_per_core,
            mhz,
            memory_mib: 8_192,
            accelerators: None,
            local_disk_gib: None,
            burst: Burst::Unknown,
            network: Limits::default(),
            disk: Limits::default(),
            disk_operations: Limits::default(),
            interfaces: None,
        }
    }

    #[test]
    fn a_slower_core_and_half_a_core_do_less_and_a_faster_one_is_not_counted_on() {
        let now = of("m7a", Some(3_700), Some(1));
        // 1,000 × 3,700 / 2,500
        assert_eq!(of("x", Some(2_500), Some(1)).doing(1_000, &now), Some(1_480));
        assert_eq!(of("x", Some(3_700), Some(2)).doing(1_000, &now), Some(2_000), "a vCPU is half a core");
        assert_eq!(of("x", Some(2_500), Some(2)).doing(1_001, &now), Some(2_963), "rounded up from 2,962.96");
        assert_eq!(of("x", Some(5_000), Some(1)).doing(1_000, &now), Some(1_000));
        assert_eq!(of("x", None, Some(1)).doing(1_000, &now), None);
        assert_eq!(of("x", Some(2_500), None).doing(1_000, &now), None);
        assert_eq!(of("m7a", None, None).doing(1_000, &now), Some(1_000), "the same processor");
    }
}
