//! Which class a system call belongs to, by its number on this architecture. Calls of 32-bit programs on a 64-bit
//! kernel have other numbers and are counted under the wrong class.

use node_agent_ebpf::syscall_class::{MAX_NUMBER, MEMORY, NETWORK, OTHER, PROCESS, READ, TIME, WAIT, WRITE};

macro_rules! calls {
    ($($name:ident)*) => { &[$(libc::$name),*] };
}

const READS: &[libc::c_long] =
    calls!(SYS_read SYS_pread64 SYS_readv SYS_preadv SYS_preadv2 SYS_getdents64 SYS_readahead);
const WRITES: &[libc::c_long] = calls!(
    SYS_write SYS_pwrite64 SYS_writev SYS_pwritev SYS_pwritev2 SYS_fsync SYS_fdatasync SYS_sync_file_range
    SYS_copy_file_range SYS_sendfile SYS_splice SYS_tee SYS_vmsplice SYS_fallocate SYS_ftruncate
);
const NETWORKS: &[libc::c_long] = calls!(
    SYS_socket SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_sendto SYS_recvfrom
    SYS_sendmsg SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_shutdown SYS_getsockname SYS_getpeername SYS_setsockopt
    SYS_getsockopt
);
const MEMORIES: &[libc::c_long] = calls!(
    SYS_brk SYS_mmap SYS_munmap SYS_mprotect SYS_madvise SYS_mremap SYS_mlock SYS_munlock SYS_mlockall SYS_munlockall
    SYS_msync SYS_mincore SYS_memfd_create
);
const PROCESSES: &[libc::c_long] = calls!(
    SYS_clone SYS_clone3 SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_kill SYS_tgkill SYS_tkill
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigqueueinfo SYS_getpid SYS_gettid SYS_getppid
    SYS_set_tid_address SYS_set_robust_list SYS_prctl SYS_setsid SYS_setpgid SYS_unshare SYS_setns
);
const TIMES: &[libc::c_long] = calls!(
    SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_nanosleep SYS_clock_nanosleep SYS_timer_create
    SYS_timer_settime SYS_timer_gettime SYS_timer_delete SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime
    SYS_setitimer SYS_getitimer SYS_times
);
const WAITS: &[libc::c_long] = calls!(
    SYS_ppoll SYS_pselect6 SYS_epoll_pwait SYS_futex SYS_wait4 SYS_waitid SYS_rt_sigtimedwait SYS_rt_sigsuspend
    SYS_io_getevents SYS_io_uring_enter SYS_sched_yield SYS_flock
);
/// Calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLD: &[(usize, &[libc::c_long])] = &[
    (READ, calls!(SYS_getdents)),
    (PROCESS, calls!(SYS_fork SYS_vfork)),
    (TIME, calls!(SYS_time SYS_alarm)),
    (WAIT, calls!(SYS_poll SYS_select SYS_epoll_wait SYS_pause)),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[(usize, &[libc::c_long])] = &[];

/// The class of each number.
pub(super) fn classes() -> [usize; MAX_NUMBER] {
    let mut classes = [OTHER; MAX_NUMBER];
    let common = [
        (READ, READS),
        (WRITE, WRITES),
        (NETWORK, NETWORKS),
        (MEMORY, MEMORIES),
        (PROCESS, PROCESSES),
        (TIME, TIMES),
        (WAIT, WAITS),
    ];
    for (class, numbers) in common.iter().chain(OLD) {
        for number in *numbers {
            if let Some(slot) = usize::try_from(*number).ok().and_then(|number| classes.get_mut(number)) {
                *slot = *class;
            }
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_is_named_has_a_class_below_the_highest_number() {
        let classes = classes();
        for (class, numbers) in [(READ, READS), (WRITE, WRITES), (NETWORK, NETWORKS), (WAIT, WAITS)] {
            for number in numbers {
                assert_eq!(usize::try_from(*number).ok().and_then(|number| classes.get(number)), Some(&class));
            }
        }
    }
}
