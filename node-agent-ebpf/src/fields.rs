//! Reads fields of kernel structs at offsets that the agent found in the kernel's own type information.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use node_agent_ebpf::{ABSENT, Offsets, counter};

/// Filled by the agent before the object is loaded.
#[unsafe(no_mangle)]
static OFFSETS: Offsets = Offsets {
    task_pid: ABSENT,
    task_tgid: ABSENT,
    task_flags: ABSENT,
    task_comm: ABSENT,
    task_group_leader: ABSENT,
    task_real_parent: ABSENT,
    task_cred: ABSENT,
    task_signal: ABSENT,
    task_exit_state: ABSENT,
    task_exit_signal: ABSENT,
    task_start_boottime: ABSENT,
    task_exit_code: ABSENT,
    task_delays: ABSENT,
    task_counters: [ABSENT; counter::IN_TASK],
    delays_blkio: ABSENT,
    task_mm: ABSENT,
    task_cgroups: ABSENT,
    cred_uid: ABSENT,
    signal_live: ABSENT,
    signal_flags: ABSENT,
    signal_group_exit_code: ABSENT,
    mm_hiwater_rss: ABSENT,
    mm_rss: ABSENT,
    mm_rss_stride: ABSENT,
    css_set_v2: ABSENT,
    css_set_cpuacct: ABSENT,
    css_set_pids: ABSENT,
    css_cgroup: ABSENT,
    cgroup_kn: ABSENT,
    kn_id: ABSENT,
    kn_name: ABSENT,
    kn_parent: ABSENT,
    socket_sk: ABSENT,
    sock_family: ABSENT,
    sock_peer4: ABSENT,
    sock_own4: ABSENT,
    sock_peer6: ABSENT,
    sock_own6: ABSENT,
    victim_is_task: 0,
    page_shift: 12,
    exits_counted_at_exit: 0,
    count_from_boottime_ns: 0,
};

/// Reads one member of [`OFFSETS`]; volatile, because the compiler may not assume the values above.
macro_rules! offset {
    ($field:ident $([$index:expr])?) => {
        // SAFETY: the static lives as long as the program.
        unsafe { core::ptr::read_volatile(&raw const $crate::fields::offsets().$field $([$index])?) }
    };
}
pub(crate) use offset;

#[inline(always)]
pub(crate) fn offsets() -> &'static Offsets {
    &OFFSETS
}

/// An address inside the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) u64);

impl Address {
    /// The value at `offset`; `None` if the kernel has no such field or the address is not mapped.
    #[inline(always)]
    pub(crate) fn read<T>(self, offset: u32) -> Option<T> {
        if offset == ABSENT || self.0 == 0 {
            return None;
        }
        // SAFETY: the helper checks the address; T is an integer or an array of them wherever this is called.
        unsafe { bpf_probe_read_kernel((self.0 + u64::from(offset)) as *const T) }.ok()
    }

    /// The pointer at `offset`.
    #[inline(always)]
    pub(crate) fn follow(self, offset: u32) -> Option<Self> {
        let to: u64 = self.read(offset)?;
        (to != 0).then_some(Self(to))
    }
}
