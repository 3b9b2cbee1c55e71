//! One record of taskstats: what the kernel says of a task that ends.
//!
//! Layout: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/taskstats.h>; fields are only ever added behind it.

use super::proc::{Io, Sums};
use crate::{model::comm_bytes, netlink::field};
use node_agent_ebpf::COMM_BYTES;

/// The first version that names the process of a thread and says which thread is the last one (Linux 5.19).
const FIRST_VERSION: u16 = 12;
/// `AGROUP` of `ac_flag`: the last task of its process.
const LAST_OF_ITS_PROCESS: u8 = 0x20;
/// The scheduler's sum is stale by up to a tick when the record is made (measured: it holds 20 % of the truth for processes of 0.5 ms);
/// below this, the tick's own sample is the better estimate: it is right on average.
const SMALL_NS: u64 = 20_000_000;

/// A task that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Process id.
    pub process: u32,
    /// Process id of the parent.
    pub parent: u32,
    /// The user.
    pub uid: u32,
    /// Executable name.
    pub comm: [u8; COMM_BYTES],
    /// The process ended with this task.
    pub is_last: bool,
    /// How it ended, as wait(2) gives it.
    pub wait_status: u32,
    /// CPU time by the scheduler, in nanoseconds.
    pub scheduled_ns: u64,
    /// All that a sample of `/proc` shows as well; its CPU time is what the clock's ticks sampled.
    pub sums: Sums,
    /// Highest resident memory of the process, in bytes.
    pub peak_resident_bytes: u64,
}

impl Record {
    /// Reads a `struct taskstats`; `None` if it is too old or too short.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let u64_at = |offset| field(bytes, offset).map(u64::from_ne_bytes);
        let u32_at = |offset| field(bytes, offset).map(u32::from_ne_bytes);
        if u16::from_ne_bytes(field(bytes, 0)?) < FIRST_VERSION {
            return None;
        }
        let name: [u8; 32] = field(bytes, 80)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let micros = |offset| u64_at(offset).map(|us| us.saturating_mul(1_000));
        let (user_ns, system_ns) = (micros(152)?, micros(160)?);
        Some(Self {
            process: u32_at(368)?,
            parent: u32_at(132)?,
            uid: u32_at(120)?,
            comm: comm_bytes(name.get(..end)?),
            is_last: field::<1>(bytes, 8)?[0] & LAST_OF_ITS_PROCESS != 0,
            scheduled_ns: u64_at(72)?,
            wait_status: u32_at(4)?,
            sums: Sums {
                cpu_ns: user_ns.saturating_add(system_ns),
                user_ns,
                system_ns,
                minor_faults: u64_at(168)?,
                major_faults: u64_at(176)?,
                io: Some(Io {
                    read_bytes: u64_at(248)?,
                    written_bytes: u64_at(256)?,
                    read_calls: u64_at(232)?,
                    write_calls: u64_at(240)?,
                }),
            },
            peak_resident_bytes: u64_at(200)?.saturating_mul(1024),
        })
    }
}

/// CPU time of the process as `struct taskstats` for a whole process gives it; it has little else.
pub(super) fn scheduled_ns_of_process(bytes: &[u8]) -> Option<u64> {
    field(bytes, 72).map(u64::from_ne_bytes)
}

/// The better of two estimates of the CPU time of a process that nobody saw alive.
pub(super) fn best_cpu_ns(scheduled_ns: u64, sampled_ns: u64) -> u64 {
    if scheduled_ns < SMALL_NS { sampled_ns } else { scheduled_ns }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_or_too_short_is_no_record() {
        let mut bytes = vec![0_u8; 560];
        bytes[0] = 16;
        assert!(Record::parse(&bytes).is_some());
        assert_eq!(Record::parse(&bytes[..371]), None);
        bytes[0] = 11;
        assert_eq!(Record::parse(&bytes), None);
        assert_eq!(Record::parse(&[]), None);
    }

    #[test]
    fn each_field_is_where_the_kernel_puts_it() {
        let mut bytes = vec![0_u8; 560];
        let mut put = |offset: usize, value: &[u8]| bytes[offset..offset + value.len()].copy_from_slice(value);
        put(0, &16_u16.to_ne_bytes());
        put(4, &256_u32.to_ne_bytes());
        put(8, &[LAST_OF_ITS_PROCESS]);
        put(72, &7_u64.to_ne_bytes());
        put(80, b"true\0rubbish");
        put(120, &1000_u32.to_ne_bytes());
        put(132, &41_u32.to_ne_bytes());
        put(152, &2_u64.to_ne_bytes());
        put(160, &3_u64.to_ne_bytes());
        put(200, &4_u64.to_ne_bytes());
        put(248, &5_u64.to_ne_bytes());
        put(256, &6_u64.to_ne_bytes());
        put(368, &42_u32.to_ne_bytes());
        let expected = Record {
            process: 42,
            parent: 41,
            uid: 1000,
            comm: comm_bytes(b"true"),
            is_last: true,
            wait_status: 256,
            scheduled_ns: 7,
            sums: Sums {
                cpu_ns: 5_000,
                user_ns: 2_000,
                system_ns: 3_000,
                io: Some(Io { read_bytes: 5, written_bytes: 6, ..Io::default() }),
                ..Sums::default()
            },
            peak_resident_bytes: 4096,
        };
        assert_eq!(Record::parse(&bytes).unwrap(), expected);
    }

    #[test]
    fn ticks_speak_for_the_short_and_the_scheduler_for_the_long() {
        assert_eq!(best_cpu_ns(100_000, 4_000_000), 4_000_000);
        assert_eq!(best_cpu_ns(100_000, 0), 0);
        assert_eq!(best_cpu_ns(3_000_000_000, 2_996_000_000), 3_000_000_000);
    }
}
