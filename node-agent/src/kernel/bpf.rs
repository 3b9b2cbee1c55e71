//! The few calls of bpf(2) that are made by hand, because the descriptors they take or give must outlive, or come from,
//! another process. None of them asks for a capability from Linux 5.19 on, whatever `kernel.unprivileged_bpf_disabled`
//! says: only loading programs and making maps does.
//! <https://github.com/torvalds/linux/blob/v6.1/kernel/bpf/syscall.c#L4910-L4925>

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};

/// Commands: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/bpf.h#L922-L965>
const MAP_LOOKUP_BATCH: libc::c_int = 24;
const MAP_DELETE_BATCH: libc::c_int = 27;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const LINK_CREATE: libc::c_int = 28;
const ITER_CREATE: libc::c_int = 33;
/// <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/bpf.h#L1088>
const TRACE_ITER: u32 = 28;
/// Index of `recursion_misses` in `bpf_prog_info`, in units of 8 bytes; since Linux 5.12.
const RECURSION_MISSES: usize = 26;

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: RawFd,
    padding: u32,
}

#[repr(C)]
struct LinkCreate {
    program: RawFd,
    target: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct IterCreate {
    link: RawFd,
    flags: u32,
}

#[repr(C)]
struct Batch {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: RawFd,
    element_flags: u64,
    flags: u64,
}

#[repr(C)]
struct Info {
    descriptor: RawFd,
    length: u32,
    to: u64,
}

/// # Safety
/// `attributes` must be those of `command`, and addresses in them must be valid for it.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes at most as many bytes as it is told; the caller answers for the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// # Safety
/// As [`bpf`], and the command must give a new descriptor.
unsafe fn open<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { bpf(command, attributes)? };
    let descriptor = RawFd::try_from(descriptor).map_err(|_| io::Error::other("bpf(2) gave no descriptor"))?;
    // SAFETY: the kernel has just made it, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Attaches a loaded program: to what it was loaded for, or to the raw tracepoint `name`.
pub(super) fn attach(program: BorrowedFd<'_>, name: Option<&std::ffi::CStr>) -> io::Result<OwnedFd> {
    let name = name.map_or(0, |name| name.as_ptr().addr() as u64);
    let mut attributes = RawTracepoint { name, program: program.as_raw_fd(), padding: 0 };
    // SAFETY: the name is a C string that lives until the call returns.
    unsafe { open(RAW_TRACEPOINT_OPEN, &mut attributes) }
}

/// Makes an iterator of a loaded program; [`open_iterator`] then reads it as often as wanted.
pub(super) fn link_iterator(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attributes = LinkCreate { program: program.as_raw_fd(), target: 0, attach_type: TRACE_ITER, flags: 0 };
    // SAFETY: plain integers.
    unsafe { open(LINK_CREATE, &mut attributes) }
}

/// A file that runs the iterator once, from its begin to its end.
pub(super) fn open_iterator(link: BorrowedFd<'_>) -> io::Result<std::fs::File> {
    let mut attributes = IterCreate { link: link.as_raw_fd(), flags: 0 };
    // SAFETY: plain integers.
    unsafe { open(ITER_CREATE, &mut attributes) }.map(std::fs::File::from)
}

/// How often the kernel did not run a program, because it was running on the same CPU already.
pub(super) fn missed_runs(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = [0_u64; RECURSION_MISSES + 1];
    let length = u32::try_from(size_of_val(&info)).unwrap_or(0);
    let mut attributes =
        Info { descriptor: program.as_raw_fd(), length, to: info.as_mut_ptr().expose_provenance() as u64 };
    // SAFETY: the kernel writes at most `length` bytes into `info`, which lives until the call returns.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attributes)? };
    Ok(info[RECURSION_MISSES])
}

/// Fills `keys` and `values` with the next entries of a hash map, as many as both hold, and says from where the ones after them come; `None` behind
/// the last. Both must be of the map's own types. `ENOSPC` says that they hold less than one bucket of the map.
pub(super) fn look_up_batch<K: aya::Pod, V: aya::Pod>(
    map: BorrowedFd<'_>,
    from: Option<u32>,
    keys: &mut Vec<K>,
    values: &mut Vec<V>,
) -> io::Result<Option<u32>> {
    keys.clear();
    values.clear();
    let capacity = keys.capacity().min(values.capacity());
    let mut next = 0_u32;
    let mut attributes = Batch {
        from: from.as_ref().map_or(0, |from| std::ptr::from_ref(from).expose_provenance() as u64),
        next: (&raw mut next).expose_provenance() as u64,
        keys: keys.as_mut_ptr().expose_provenance() as u64,
        values: values.as_mut_ptr().expose_provenance() as u64,
        count: u32::try_from(capacity).unwrap_or(u32::MAX),
        map: map.as_raw_fd(),
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel writes at most `count` keys and values, for which there is room, and one number to `next`.
    let is_last = match unsafe { bpf(MAP_LOOKUP_BATCH, &mut attributes) } {
        Ok(_) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(error),
    };
    let count = usize::try_from(attributes.count).unwrap_or(0).min(capacity);
    // SAFETY: the kernel has written so many of each.
    unsafe {
        keys.set_len(count);
        values.set_len(count);
    }
    Ok((!is_last).then_some(next))
}

/// Removes these keys, which must be in the map and of its own type.
pub(super) fn delete_batch<K: aya::Pod>(map: BorrowedFd<'_>, keys: &[K]) -> io::Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut attributes = Batch {
        from: 0,
        next: 0,
        keys: keys.as_ptr().expose_provenance() as u64,
        values: 0,
        count: u32::try_from(keys.len()).map_err(io::Error::other)?,
        map: map.as_raw_fd(),
        element_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads so many keys, and writes how many it removed into the attributes.
    unsafe { bpf(MAP_DELETE_BATCH, &mut attributes) }.map(drop)
}
