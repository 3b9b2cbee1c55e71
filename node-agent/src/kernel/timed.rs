//! Which of the calls in which tasks sleep a timer ends: naps, and waits with a timeout.
//!
//! Somebody who sleeps by the clock has told the kernel that he will go on. Whoever waits without a timeout goes on only if somebody else does something.
//! Timers that another call has set (timerfd, alarm) are not seen.

/// Whether a task that sleeps in this call goes on by itself, at the latest when its time is over. `arguments` are the call's third, fourth and fifth.
pub(super) fn ends_by_timer(call: u32, arguments: [u64; 3]) -> bool {
    let [third, fourth, fifth] = arguments;
    // Timeouts that are given where they lie: no address is none. Signed milliseconds: a negative number is none.
    let is_given = |address: u64| address != 0;
    #[expect(clippy::cast_possible_truncation, reason = "an int lies in the lower half of its register")]
    let is_length = |milliseconds: u64| milliseconds as i32 > 0;
    #[cfg(target_arch = "x86_64")]
    match i64::from(call) {
        libc::SYS_poll => return is_length(third),
        libc::SYS_select => return is_given(fifth),
        libc::SYS_epoll_wait => return is_length(fourth),
        _ => {}
    }
    match i64::from(call) {
        // A call that has a timeout and was interrupted goes on as the second; no other does.
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep | libc::SYS_restart_syscall => true,
        libc::SYS_ppoll | libc::SYS_rt_sigtimedwait => is_given(third),
        libc::SYS_epoll_pwait => is_length(fourth),
        libc::SYS_epoll_pwait2 | libc::SYS_futex | libc::SYS_futex_waitv | libc::SYS_semtimedop => is_given(fourth),
        libc::SYS_pselect6 | libc::SYS_io_getevents | libc::SYS_mq_timedreceive | libc::SYS_mq_timedsend => {
            is_given(fifth)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::ends_by_timer;
    use node_agent_ebpf::NO_CALL;

    #[test]
    fn naps_end_by_themselves_and_waits_do_if_they_have_a_timeout() {
        // Pid 1 of a machine, an address of user space, and -1 in an int's register with and without its upper half.
        let (address, never, never_short) = (0x7ffd_0000_0000, u64::MAX, 0xffff_ffff);
        for (call, arguments, expected) in [
            (libc::SYS_nanosleep, [0, 0, 0], true),
            (libc::SYS_clock_nanosleep, [address, 0, 0], true),
            (libc::SYS_restart_syscall, [0, 0, 0], true),
            (libc::SYS_ppoll, [address, 0, 0], true),
            (libc::SYS_ppoll, [0, address, address], false),
            (libc::SYS_epoll_pwait, [0, 1_800_000, 0], true),
            (libc::SYS_epoll_pwait, [0, never, 0], false),
            (libc::SYS_epoll_pwait, [0, never_short, 0], false),
            (libc::SYS_epoll_pwait2, [0, 0, address], false),
            (libc::SYS_futex, [0, address, 0], true),
            (libc::SYS_futex, [2, 0, address], false),
            (libc::SYS_pselect6, [0, 0, address], true),
            (libc::SYS_pselect6, [address, address, 0], false),
            (libc::SYS_read, [1, 1, 1], false),
            (libc::SYS_wait4, [1, 1, 1], false),
            (libc::SYS_rt_sigsuspend, [1, 1, 1], false),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_poll, [never_short, 0, 0], false),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_poll, [1, 0, 0], true),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_select, [0, 0, address], true),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_epoll_wait, [0, never, 0], false),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_pause, [1, 1, 1], false),
        ] {
            let call = u32::try_from(call).unwrap_or(NO_CALL);
            assert_eq!(ends_by_timer(call, arguments), expected, "{call} {arguments:x?}");
        }
        assert!(!ends_by_timer(NO_CALL, [1, 1, 1]));
    }
}
