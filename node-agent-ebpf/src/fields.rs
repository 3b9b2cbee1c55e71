//! Reads fields of kernel structs at offsets that the agent found in the kernel's own type information.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use core::arch::asm;
use node_agent_ebpf::{ABSENT, COMM_BYTES, Offsets, counter};

/// Filled by the agent before the object is loaded.
#[unsafe(no_mangle)]
static OFFSETS: Offsets = Offsets {
    task_pid: ABSENT,
    task_tgid: ABSENT,
    task_flags: ABSENT,
    task_comm: ABSENT,
    task_group_leader: ABSENT,
    task_cred: ABSENT,
    task_signal: ABSENT,
    task_exit_state: ABSENT,
    task_exit_signal: ABSENT,
    task_start_boottime: ABSENT,
    task_exit_code: ABSENT,
    task_state: ABSENT,
    task_last_arrival: ABSENT,
    task_jobctl: ABSENT,
    task_stack: ABSENT,
    stack_registers: 0,
    registers_call: ABSENT,
    registers_arguments: [ABSENT; 3],
    task_compat: ABSENT,
    compat_bit: 0,
    flag_frozen: 0,
    task_delays: ABSENT,
    task_counters: [ABSENT; counter::IN_TASK],
    delays_blkio: ABSENT,
    task_mm: ABSENT,
    mm_exe_file: ABSENT,
    file_inode: ABSENT,
    inode_number: ABSENT,
    inode_super_block: ABSENT,
    inode_changed_s: ABSENT,
    inode_changed_ns: ABSENT,
    super_block_device: ABSENT,
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

/// Zero, of which the compiler does not know that it is: it would call `memset` to fill anything with zeros, a loop that the kernel's
/// verifier follows byte by byte on each path.
#[inline(always)]
pub(crate) fn zero() -> u64 {
    let zero: u64;
    // SAFETY: sets a register.
    unsafe { asm!("{zero} = 0", zero = out(reg) zero, options(nostack, nomem, pure)) };
    zero
}

/// A name that is empty, likewise.
#[inline(always)]
pub(crate) fn no_name() -> [u8; COMM_BYTES] {
    name([zero(), zero()])
}

/// A name of two words.
#[inline(always)]
pub(crate) fn name(words: [u64; 2]) -> [u8; COMM_BYTES] {
    // SAFETY: both are sixteen bytes of plain data.
    unsafe { core::mem::transmute(words) }
}

/// What is read in one piece.
pub(crate) trait Field: Copy {
    /// The kernel knows each field by its type and loads numbers and pointers only.
    const IS_NUMBER: bool = true;
}

impl Field for u16 {}
impl Field for u32 {}
impl Field for i32 {}
impl Field for u64 {}
impl<T: Copy, const N: usize> Field for [T; N] {
    const IS_NUMBER: bool = false;
}

/// An address inside the kernel; `TYPED` if it is a pointer that the kernel passed to the program or that was reached from one: the verifier
/// knows to what it points, and allows loads of that type's fields.
#[derive(Clone, Copy)]
pub(crate) struct Address<const TYPED: bool>(u64);

impl<const TYPED: bool> Address<TYPED> {
    /// Of a value of the kind that `TYPED` says.
    #[inline(always)]
    pub(crate) fn new(at: u64) -> Self {
        Self(at)
    }

    /// The address itself, as a name for what is there.
    #[inline(always)]
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The same, to reckon with: the verifier allows no arithmetic with a pointer that it knows.
    #[inline(always)]
    pub(crate) fn to_reckon_with(self) -> u64 {
        if !TYPED {
            return self.0;
        }
        // SAFETY: reads a local.
        unsafe { bpf_probe_read_kernel(&raw const self.0) }.unwrap_or(0)
    }

    /// Where the field at `offset` is.
    #[inline(always)]
    pub(crate) fn field(self, offset: u32) -> *const u8 {
        (self.0 + u64::from(offset)) as *const u8
    }

    /// The value at `offset`; `None` if the kernel has no such field or the address is not mapped. A load from an address that is
    /// not mapped gives 0.
    #[inline(always)]
    pub(crate) fn read<T: Field>(self, offset: u32) -> Option<T> {
        if !TYPED || !T::IS_NUMBER {
            return self.copy(offset);
        }
        if offset == ABSENT {
            return None;
        }
        // SAFETY: the verifier has checked type and place, and the kernel catches a load that fails.
        Some(unsafe { core::ptr::read_volatile(self.field(offset).cast()) })
    }

    /// The same through a helper, for whatever the verifier lets nobody load: a call for each of a task's thirty fields takes half
    /// of a program's time.
    #[inline(always)]
    pub(crate) fn copy<T: Field>(self, offset: u32) -> Option<T> {
        if offset == ABSENT || self.0 == 0 {
            return None;
        }
        // SAFETY: the helper checks the address; T is an integer or an array of them.
        unsafe { bpf_probe_read_kernel(self.field(offset).cast()) }.ok()
    }

    /// The pointer at `offset`. Where it is loaded, no pointer is one too, and all behind it is 0: each question that is not asked here
    /// halves the paths that the kernel's verifier must follow.
    #[inline(always)]
    pub(crate) fn follow(self, offset: u32) -> Option<Self> {
        let to: u64 = self.read(offset)?;
        (TYPED || to != 0).then_some(Self(to))
    }
}
