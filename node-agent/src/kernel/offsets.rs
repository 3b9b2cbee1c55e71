//! Where the fields lie in the running kernel, from its own type information (BTF).
//!
//! Nothing is compiled in: one object serves every kernel. A field that a kernel lacks is absent and switches off what
//! needs it, no more. It is read once; that takes 65 MB (measured on 6.18), in a process that ends: [`super::loader`].

use crate::procfs::cgroups::Mounts;
use btfparse::{Integer32Value, Offset, Readable, TypeInformation, TypeVariant};
use node_agent_ebpf::{ABSENT, Offsets, counter, runs::LineageOffsets};
use std::collections::HashMap;

/// Where the kernel shows its type information.
pub const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";

/// Why no offsets are known.
#[derive(Debug, thiserror::Error)]
pub enum OffsetsError {
    /// No file: the kernel was built without `CONFIG_DEBUG_INFO_BTF`.
    #[error("{BTF_PATH} cannot be read: {0}; the kernel needs CONFIG_DEBUG_INFO_BTF")]
    NoBtf(#[source] std::io::Error),
    /// Not BTF, or a version that the parser does not know.
    #[error("{BTF_PATH} is not understood: {0}")]
    Format(String),
    /// Without this field nothing can be measured.
    #[error("this kernel has no {0}")]
    Missing(&'static str),
}

struct Bytes<'a>(&'a [u8]);

impl Readable for Bytes<'_> {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> btfparse::Result<()> {
        let source = usize::try_from(offset)
            .ok()
            .and_then(|start| self.0.get(start..start.checked_add(buffer.len())?))
            .ok_or_else(|| btfparse::Error::new(btfparse::ErrorKind::IOError, "beyond the end of the file"))?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

/// The kernel's types, with the structs by name: other kinds of types may bear the same name as a struct.
struct Types {
    all: TypeInformation,
    structs: HashMap<&'static str, u32>,
}

const STRUCTS: [&str; 15] = [
    "task_struct",
    "cred",
    "signal_struct",
    "mm_struct",
    "css_set",
    "cgroup_subsys_state",
    "cgroup",
    "kernfs_node",
    "task_delay_info",
    "socket",
    "sock",
    "linux_binprm",
    "file",
    "inode",
    "super_block",
];

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

impl Types {
    fn new(btf: &[u8]) -> Result<Self, OffsetsError> {
        let all =
            TypeInformation::new(&Bytes(btf)).map_err(|error| OffsetsError::Format(error.message().to_owned()))?;
        let structs = all
            .get()
            .iter()
            .filter_map(|(id, of)| match of {
                TypeVariant::Struct(of) => {
                    let name = of.name().as_deref()?;
                    Some((*STRUCTS.iter().find(|wanted| **wanted == name)?, *id))
                }
                _ => None,
            })
            .collect();
        Ok(Self { all, structs })
    }

    fn find(&self, of: &str, path: &str) -> Option<(u32, u32)> {
        match self.all.offset_of(*self.structs.get(of)?, path).ok()? {
            (type_id, Offset::ByteOffset(bytes)) => Some((type_id, bytes)),
            (_, Offset::BitOffsetAndSize(..)) => None,
        }
    }

    fn optional(&self, of: &str, path: &str) -> u32 {
        self.find(of, path).map_or(ABSENT, |(_, bytes)| bytes)
    }

    /// For a field that was renamed.
    fn first_of<const N: usize>(&self, of: &str, paths: [&str; N]) -> u32 {
        paths.into_iter().find_map(|path| self.find(of, path)).map_or(ABSENT, |(_, bytes)| bytes)
    }

    fn required(&self, of: &str, path: &'static str) -> Result<u32, OffsetsError> {
        self.find(of, path).map(|(_, bytes)| bytes).ok_or(OffsetsError::Missing(path))
    }

    /// The pointer of one v1 controller in `css_set.subsys`; its index differs from kernel to kernel.
    fn subsystem(&self, controller: &str) -> u32 {
        let index = self.all.get().values().find_map(|of| match of {
            TypeVariant::Enum(of) if of.name().as_deref() == Some("cgroup_subsys_id") => {
                let value = of.named_value_list().iter().find(|value| value.name == controller)?;
                match value.value {
                    Integer32Value::Unsigned(index) => Some(index),
                    Integer32Value::Signed(index) => u32::try_from(index).ok(),
                }
            }
            _ => None,
        });
        match (index, self.find("css_set", "subsys")) {
            (Some(index), Some((_, first))) => first + 8 * index,
            _ => ABSENT,
        }
    }

    /// First counter and stride of `mm_struct.rss_stat`: an array of per-CPU counters since Linux 6.2, before that a
    /// struct around an array of plain ones.
    fn resident_counters(&self) -> (u32, u32) {
        let per_cpu = self.find("mm_struct", "rss_stat[1].count").zip(self.find("mm_struct", "rss_stat[0].count"));
        let plain = self.find("mm_struct", "rss_stat.count[1]").zip(self.find("mm_struct", "rss_stat.count[0]"));
        match per_cpu.or(plain) {
            Some(((_, second), (_, first))) => (first, second - first),
            None => (ABSENT, 0),
        }
    }

    /// The types of a tracepoint's parameters.
    fn tracepoint(&self, name: &str) -> Option<Vec<u32>> {
        let name = format!("btf_trace_{name}");
        let pointer = self.all.get().values().find_map(|of| match of {
            TypeVariant::Typedef(of) if of.name().as_deref() == Some(&name) => Some(*of.tid()),
            _ => None,
        })?;
        let TypeVariant::FuncProto(proto) = self.all.from_id(self.all.pointee_tid(pointer).ok()?)? else { return None };
        // The first parameter is the tracepoint's own context.
        Some(proto.parameter_list().iter().skip(1).map(|parameter| parameter.tid()).collect())
    }

    fn has_function(&self, name: &str) -> bool {
        self.all.get().values().any(|of| matches!(of, TypeVariant::Func(of) if of.name().as_deref() == Some(name)))
    }

    /// Whether the tracepoint passes the victim itself (6.8 and later) and not its pid.
    fn victim_is_task(&self) -> Option<bool> {
        let first = *self.tracepoint("mark_victim")?.first()?;
        Some(matches!(self.all.from_id(first), Some(TypeVariant::Ptr(_))))
    }
}

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
