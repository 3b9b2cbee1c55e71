//! What the programs without type information (`tracepoints.rs`) and the agent share.

use crate::COMM_BYTES;

/// Distinct keys that both buffers hold together. 8,192 × (40 + 24 + about 48 bytes of the kernel's own) is 0.9 MB, allocated once.
pub const MAX_PROCESS_EVENTS: u32 = 8_192;
/// Living processes whose parent is remembered. 16,384 × (8 + 8 + about 60 bytes) is 1.2 MB, allocated once; who falls out is
/// attributed to itself.
pub const MAX_PARENTS: u32 = 16_384;

/// By what they are counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessEventKey {
    /// The cgroup in the unified tree; 0 if the host has trees of version 1, where the kernel's helper does not tell it.
    pub cgroup_id: u64,
    /// The parent, else the process itself: its place counts where the cgroup is not told.
    pub owner: u32,
    /// The real user.
    pub uid: u32,
    /// 1 for kernel threads.
    pub kernel_thread: u32,
    /// Which of the two buffers this entry belongs to.
    pub buffer: u32,
    /// Executable name, zero-padded.
    pub comm: [u8; COMM_BYTES],
}

/// How many there were.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes started.
    pub forks: u64,
    /// Programs started.
    pub execs: u64,
    /// Processes ended.
    pub exits: u64,
}

/// Indices into the control array.
pub mod control {
    /// Which buffer (0 or 1) the programs count into.
    pub const BUFFER: u32 = 0;
    /// 1 if the kernel's helper tells the cgroup.
    pub const SHOWS_CGROUP: u32 = 1;
    /// Length of the array.
    pub const LEN: u32 = 2;
}

#[cfg(feature = "user")]
mod user {
    // SAFETY: repr(C), Copy, made of integers only and without padding.
    unsafe impl aya::Pod for super::ProcessEventKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Counts {}
}

// Padding would make equal keys differ.
const _: () = {
    assert!(size_of::<ProcessEventKey>() == 8 + 4 * 4 + COMM_BYTES);
    assert!(size_of::<Counts>() == 3 * 8);
};
