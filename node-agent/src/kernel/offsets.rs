//! Where the fields lie in the running kernel, from its own type information (BTF).
//!
//! Nothing is compiled in: one object serves every kernel. A field that a kernel lacks is absent and switches off what
//! needs it, no more. It is read once; that takes 65 MB (measured on 6.18), in a process that ends: [`super::loader`].

use super::types::Types;
pub use super::types::{BTF_PATH, OffsetsError};
use crate::procfs::cgroups::Mounts;
use node_agent_ebpf::{ABSENT, Offsets, counter, runs::LineageOffsets};

/// The registers' names of the third, fourth and fifth argument, and of the system call's number.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: ([&str; 3], &str) = (["dx", "r10", "r8"], "orig_ax");
/// Likewise.
#[cfg(not(target_arch = "x86_64"))]
const ARGUMENTS: ([&str; 3], &str) = (["regs[2]", "regs[3]", "regs[4]"], "syscallno");
/// Where a task's word lies that says that it is in a 32-bit call, and its bit: `TS_COMPAT`, `TIF_32BIT`.
/// <https://github.com/torvalds/linux/blob/v6.12/arch/x86/include/asm/thread_info.h>
#[cfg(target_arch = "x86_64")]
const COMPAT: (&str, u32) = ("thread_info.status", 1 << 1);
/// <https://github.com/torvalds/linux/blob/v6.12/arch/arm64/include/asm/thread_info.h>
#[cfg(not(target_arch = "x86_64"))]
const COMPAT: (&str, u32) = ("thread_info.flags", 1 << 22);
/// Where `task_struct` keeps the counters before [`counter::IN_TASK`], in their order.
const IN_TASK: [&str; counter::IN_TASK] = [
    "se.sum_exec_runtime",
    "utime",
    "stime",
    "sched_info.run_delay",
    "nvcsw",
    "nivcsw",
    "min_flt",
    "maj_flt",
    "ioac.read_bytes",
    "ioac.write_bytes",
    "ioac.syscr",
    "ioac.syscw",
];
/// <https://github.com/torvalds/linux/blob/v5.10/include/linux/sched.h>
const PF_FROZEN: u32 = 0x0001_0000;
/// Whether the kernel keeps delays: <https://docs.kernel.org/accounting/delay-accounting.html>
const DELAYS: &str = "/proc/sys/kernel/task_delayacct";

/// The offsets of the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// For the programs.
    pub offsets: Offsets,
    /// For those of them that follow runs.
    pub lineage: LineageOffsets,
    /// The kernel has the tracepoint of the out-of-memory killer in a shape that is understood.
    pub has_mark_victim: bool,
    /// The kernel has the tracepoints that show the length of each send and receive (6.3).
    pub has_sock_lengths: bool,
    /// The kernel sends files page by page through a function of its own (before 6.5).
    pub has_inet_sendpage: bool,
    /// `sched_process_exit` comes before the memory is taken away; the same change gave it its second parameter (6.16).
    pub exit_shows_memory: bool,
}

/// Reads the running kernel's type information.
///
/// # Errors
/// See [`OffsetsError`].
pub fn resolve(count_from_boottime_ns: u64) -> Result<Resolved, OffsetsError> {
    resolve_in(&std::fs::read(BTF_PATH).map_err(OffsetsError::NoBtf)?, &Mounts::read(), count_from_boottime_ns)
}

/// Whether the freezer of version 1 holds a task in a state of its own: from Linux 6.1 on, where the flag is another one's.
fn freezer_has_a_state(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(1))
}

/// Whether the kernel keeps delays. Before Linux 5.14 there is no switch, and it does unless it was told not to when it booted.
fn keeps_delays(switch: std::io::Result<Vec<u8>>, command_line: impl FnOnce() -> std::io::Result<Vec<u8>>) -> bool {
    match switch {
        Ok(switch) => switch.trim_ascii() == b"1",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            command_line().is_ok_and(|line| !line.split(u8::is_ascii_whitespace).any(|word| word == b"nodelayacct"))
        }
        Err(_) => false,
    }
}

fn resolve_in(btf: &[u8], mounts: &Mounts, count_from_boottime_ns: u64) -> Result<Resolved, OffsetsError> {
    let types = Types::new(btf)?;
    let task = |path| types.required("task_struct", path);
    let (mm_rss, mm_rss_stride) = types.resident_counters();
    let has_helper = types.has_registers_helper();
    let (task_stack, stack_registers) = if has_helper { (ABSENT, 0) } else { types.registers_on_stack() };
    let finds_registers = has_helper || task_stack != ABSENT;
    let register = |path| if finds_registers { types.optional("pt_regs", path) } else { ABSENT };
    let exit_shows_memory = types.tracepoint("sched_process_exit").is_some_and(|types| types.len() == 2);
    let victim_is_task = types.victim_is_task();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let keeps_delays = keeps_delays(std::fs::read(DELAYS), || std::fs::read("/proc/cmdline"));
    task(IN_TASK[counter::CPU_NS])?;
    let offsets = Offsets {
        task_pid: task("pid")?,
        task_tgid: task("tgid")?,
        task_flags: task("flags")?,
        task_comm: task("comm")?,
        task_group_leader: task("group_leader")?,
        task_cred: task("cred")?,
        task_signal: task("signal")?,
        task_exit_state: task("exit_state")?,
        task_exit_signal: task("exit_signal")?,
        task_start_boottime: task("start_boottime")?,
        task_exit_code: types.optional("task_struct", "exit_code"),
        task_state: types.first_of("task_struct", ["__state", "state"]),
        task_last_arrival: types.optional("task_struct", "sched_info.last_arrival"),
        task_jobctl: types.optional("task_struct", "jobctl"),
        task_stack,
        stack_registers,
        registers_call: register(ARGUMENTS.1),
        registers_arguments: ARGUMENTS.0.map(register),
        task_compat: types.optional("task_struct", COMPAT.0),
        compat_bit: COMPAT.1,
        flag_frozen: if freezer_has_a_state(&release) { 0 } else { PF_FROZEN },
        task_delays: if keeps_delays { types.optional("task_struct", "delays") } else { ABSENT },
        task_counters: IN_TASK.map(|path| types.optional("task_struct", path)),
        delays_blkio: types.optional("task_delay_info", "blkio_delay"),
        task_mm: task("mm")?,
        mm_exe_file: types.optional("mm_struct", "exe_file"),
        file_inode: types.optional("file", "f_inode"),
        inode_number: types.optional("inode", "i_ino"),
        inode_super_block: types.optional("inode", "i_sb"),
        inode_changed_s: types.first_of("inode", ["i_ctime_sec", "__i_ctime.tv_sec", "i_ctime.tv_sec"]),
        inode_changed_ns: types.first_of("inode", ["i_ctime_nsec", "__i_ctime.tv_nsec", "i_ctime.tv_nsec"]),
        super_block_device: types.optional("super_block", "s_dev"),
        task_cgroups: types.optional("task_struct", "cgroups"),
        cred_uid: types.required("cred", "uid")?,
        signal_live: types.required("signal_struct", "live")?,
        signal_flags: types.optional("signal_struct", "flags"),
        signal_group_exit_code: types.optional("signal_struct", "group_exit_code"),
        mm_hiwater_rss: types.optional("mm_struct", "hiwater_rss"),
        mm_rss,
        mm_rss_stride,
        css_set_v2: types.optional("css_set", "dfl_cgrp"),
        // Where a controller belongs to the unified tree, its pointer leads there and not to a tree of its own.
        css_set_cpuacct: if mounts.has_cpuacct() { types.subsystem("cpuacct_cgrp_id") } else { ABSENT },
        css_set_pids: if mounts.has_pids() { types.subsystem("pids_cgrp_id") } else { ABSENT },
        css_cgroup: types.optional("cgroup_subsys_state", "cgroup"),
        cgroup_kn: types.optional("cgroup", "kn"),
        kn_id: types.optional("kernfs_node", "id"),
        kn_name: types.optional("kernfs_node", "name"),
        kn_parent: types.first_of("kernfs_node", ["parent", "__parent"]),
        socket_sk: types.optional("socket", "sk"),
        sock_family: types.optional("sock", "__sk_common.skc_family"),
        sock_peer4: types.optional("sock", "__sk_common.skc_daddr"),
        sock_own4: types.optional("sock", "__sk_common.skc_rcv_saddr"),
        sock_peer6: types.optional("sock", "__sk_common.skc_v6_daddr"),
        sock_own6: types.optional("sock", "__sk_common.skc_v6_rcv_saddr"),
        victim_is_task: u32::from(victim_is_task == Some(true)),
        page_shift: u32::try_from(rustix::param::page_size()).unwrap_or(4096).trailing_zeros(),
        exits_counted_at_exit: u32::from(exit_shows_memory),
        count_from_boottime_ns,
    };
    let has_sock_lengths = ["sock_send_length", "sock_recv_length"].iter().all(|name| types.tracepoint(name).is_some());
    let lineage = LineageOffsets {
        binprm_filename: types.optional("linux_binprm", "filename"),
        binprm_interp: types.optional("linux_binprm", "interp"),
        mm_arg_start: types.optional("mm_struct", "arg_start"),
        mm_arg_end: types.optional("mm_struct", "arg_end"),
    };
    Ok(Resolved {
        offsets,
        lineage,
        has_mark_victim: victim_is_task.is_some(),
        has_sock_lengths,
        has_inet_sendpage: types.has_function("inet_sendpage"),
        exit_shows_memory,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_shows_every_field() {
        let resolved = resolve(0).unwrap();
        let offsets = resolved.offsets;
        for (name, offset) in [
            ("exit_code", offsets.task_exit_code),
            ("state", offsets.task_state),
            ("last_arrival", offsets.task_last_arrival),
            ("jobctl", offsets.task_jobctl),
            ("system call", offsets.registers_call),
            ("third argument", offsets.registers_arguments[0]),
            ("fourth argument", offsets.registers_arguments[1]),
            ("fifth argument", offsets.registers_arguments[2]),
            ("32-bit call", offsets.task_compat),
            ("signal flags", offsets.signal_flags),
            ("group_exit_code", offsets.signal_group_exit_code),
            ("blkio_delay", offsets.delays_blkio),
            ("sk", offsets.socket_sk),
            ("family", offsets.sock_family),
            ("IPv4 peer", offsets.sock_peer4),
            ("IPv4 own", offsets.sock_own4),
            ("IPv6 peer", offsets.sock_peer6),
            ("IPv6 own", offsets.sock_own6),
            ("cgroups", offsets.task_cgroups),
            ("hiwater_rss", offsets.mm_hiwater_rss),
            ("rss_stat", offsets.mm_rss),
            ("dfl_cgrp", offsets.css_set_v2),
            ("exe_file", offsets.mm_exe_file),
            ("f_inode", offsets.file_inode),
            ("i_ino", offsets.inode_number),
            ("i_sb", offsets.inode_super_block),
            ("seconds of ctime", offsets.inode_changed_s),
            ("nanoseconds of ctime", offsets.inode_changed_ns),
            ("s_dev", offsets.super_block_device),
            ("cgroup", offsets.css_cgroup),
            ("kn", offsets.cgroup_kn),
            ("id", offsets.kn_id),
            ("name", offsets.kn_name),
            ("parent", offsets.kn_parent),
            ("filename", resolved.lineage.binprm_filename),
            ("interp", resolved.lineage.binprm_interp),
            ("arg_start", resolved.lineage.mm_arg_start),
            ("arg_end", resolved.lineage.mm_arg_end),
        ] {
            assert_ne!(offset, ABSENT, "{name}");
        }
        for (name, offset) in IN_TASK.into_iter().zip(offsets.task_counters) {
            assert_ne!(offset, ABSENT, "{name}");
        }
        let mounts = Mounts::read();
        assert_eq!(offsets.css_set_cpuacct != ABSENT, mounts.has_cpuacct());
        assert_eq!(offsets.css_set_pids != ABSENT, mounts.has_pids());
        assert!(offsets.mm_rss_stride >= 8);
        assert!(resolved.has_mark_victim);
    }

    #[test]
    fn the_freezer_of_version_1_has_a_state_of_its_own_from_6_1_on() {
        for (release, expected) in [
            ("5.10.0-32-cloud-amd64", false),
            ("6.0.1", false),
            ("6.1.0-1", true),
            ("6.18.44", true),
            ("7.0-rc1", true),
        ] {
            assert_eq!(freezer_has_a_state(release), expected, "{release}");
        }
    }

    #[test]
    fn delays_are_kept_if_the_switch_says_so_or_if_there_is_none() {
        let error = |kind| Err(std::io::Error::from(kind));
        let missing = || error(std::io::ErrorKind::NotFound);
        let booted = |line: &'static [u8]| move || Ok(line.to_vec());
        assert!(keeps_delays(Ok(b"1\n".to_vec()), missing));
        assert!(!keeps_delays(Ok(b"0\n".to_vec()), booted(b"quiet")));
        assert!(keeps_delays(missing(), booted(b"console=ttyS0 quiet\n")));
        assert!(!keeps_delays(missing(), booted(b"nodelayacct quiet\n")));
        assert!(!keeps_delays(missing(), missing));
        assert!(!keeps_delays(error(std::io::ErrorKind::PermissionDenied), booted(b"quiet")));
    }

    #[test]
    fn what_is_no_type_information_is_refused() {
        for bytes in [&b""[..], &[0xff; 64]] {
            assert!(matches!(resolve_in(bytes, &Mounts::default(), 0), Err(OffsetsError::Format(_))));
        }
    }
}
