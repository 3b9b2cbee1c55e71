//! The kernel's types, as its own type information (BTF) tells them.

use btfparse::{Integer32Value, Offset, Readable, TypeInformation, TypeVariant};
use node_agent_ebpf::ABSENT;
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
pub(super) struct Types {
    all: TypeInformation,
    structs: HashMap<&'static str, u32>,
}

const STRUCTS: [&str; 16] = [
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
    "pt_regs",
];
/// Size of a task's stack on x86-64 and arm64: <https://github.com/torvalds/linux/blob/v5.10/arch/x86/include/asm/page_64_types.h>
const STACK_BYTES: u32 = 16 << 10;
/// Of the helper that says where a task's registers are.
const REGISTERS_HELPER: &str = "BPF_FUNC_task_pt_regs";

impl Types {
    pub(super) fn new(btf: &[u8]) -> Result<Self, OffsetsError> {
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

    pub(super) fn optional(&self, of: &str, path: &str) -> u32 {
        self.find(of, path).map_or(ABSENT, |(_, bytes)| bytes)
    }

    /// For a field that was renamed.
    pub(super) fn first_of<const N: usize>(&self, of: &str, paths: [&str; N]) -> u32 {
        paths.into_iter().find_map(|path| self.find(of, path)).map_or(ABSENT, |(_, bytes)| bytes)
    }

    pub(super) fn required(&self, of: &str, path: &'static str) -> Result<u32, OffsetsError> {
        self.find(of, path).map(|(_, bytes)| bytes).ok_or(OffsetsError::Missing(path))
    }

    /// The value of a constant that has a name.
    fn constant(&self, of_enum: &str, name: &str) -> Option<u32> {
        self.all.get().values().find_map(|of| match of {
            TypeVariant::Enum(of) if of.name().as_deref() == Some(of_enum) => {
                let value = of.named_value_list().iter().find(|value| value.name == name)?;
                match value.value {
                    Integer32Value::Unsigned(value) => Some(value),
                    Integer32Value::Signed(value) => u32::try_from(value).ok(),
                }
            }
            _ => None,
        })
    }

    /// The pointer of one v1 controller in `css_set.subsys`; its index differs from kernel to kernel.
    pub(super) fn subsystem(&self, controller: &str) -> u32 {
        match (self.constant("cgroup_subsys_id", controller), self.find("css_set", "subsys")) {
            (Some(index), Some((_, first))) => first + 8 * index,
            _ => ABSENT,
        }
    }

    /// Whether the kernel says by a helper where a task's registers are (Linux 5.15).
    pub(super) fn has_registers_helper(&self) -> bool {
        self.constant("bpf_func_id", REGISTERS_HELPER).is_some()
    }

    /// Where a task's stack lies and, from there, the registers with which it entered the kernel: at the stack's end, before Linux 6.9. From then on
    /// some kernels keep something behind them; those have [`Types::has_registers_helper`].
    pub(super) fn registers_on_stack(&self) -> (u32, u32) {
        let size = |id: u32| self.all.size_of(id).ok().and_then(|size| u32::try_from(size).ok());
        let told = self.all.get().iter().find_map(|(id, of)| match of {
            TypeVariant::Union(of) if of.name().as_deref() == Some("thread_union") => size(*id),
            _ => None,
        });
        // Not every kernel tells; it is no less than a page.
        let stack = told.unwrap_or_else(|| STACK_BYTES.max(u32::try_from(rustix::param::page_size()).unwrap_or(0)));
        let registers = self.structs.get("pt_regs").copied().and_then(size);
        match (registers, self.find("task_struct", "stack")) {
            (Some(registers), Some((_, at))) if registers < stack => (at, stack - registers),
            _ => (ABSENT, 0),
        }
    }

    /// First counter and stride of `mm_struct.rss_stat`: an array of per-CPU counters since Linux 6.2, before that a
    /// struct around an array of plain ones.
    pub(super) fn resident_counters(&self) -> (u32, u32) {
        let per_cpu = self.find("mm_struct", "rss_stat[1].count").zip(self.find("mm_struct", "rss_stat[0].count"));
        let plain = self.find("mm_struct", "rss_stat.count[1]").zip(self.find("mm_struct", "rss_stat.count[0]"));
        match per_cpu.or(plain) {
            Some(((_, second), (_, first))) => (first, second - first),
            None => (ABSENT, 0),
        }
    }

    /// The types of a tracepoint's parameters.
    pub(super) fn tracepoint(&self, name: &str) -> Option<Vec<u32>> {
        let name = format!("btf_trace_{name}");
        let pointer = self.all.get().values().find_map(|of| match of {
            TypeVariant::Typedef(of) if of.name().as_deref() == Some(&name) => Some(*of.tid()),
            _ => None,
        })?;
        let TypeVariant::FuncProto(proto) = self.all.from_id(self.all.pointee_tid(pointer).ok()?)? else { return None };
        // The first parameter is the tracepoint's own context.
        Some(proto.parameter_list().iter().skip(1).map(|parameter| parameter.tid()).collect())
    }

    pub(super) fn has_function(&self, name: &str) -> bool {
        self.all.get().values().any(|of| matches!(of, TypeVariant::Func(of) if of.name().as_deref() == Some(name)))
    }

    /// Whether the tracepoint passes the victim itself (6.8 and later) and not its pid.
    pub(super) fn victim_is_task(&self) -> Option<bool> {
        let first = *self.tracepoint("mark_victim")?.first()?;
        Some(matches!(self.all.from_id(first), Some(TypeVariant::Ptr(_))))
    }
}
