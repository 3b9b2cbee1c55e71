//! The life of the object inside the kernel: load, attach, read, and (on drop) detach.
//!
//! A reading takes one pass of the iterator and one pass over the map of the dead. The map has two buffers: the agent
//! turns them, waits until no program is still at work in the old one (`membarrier`, a few milliseconds without CPU
//! time), and only then reads and empties it, so that no event is lost in between.

use super::{
    Ledger, add_totals,
    offsets::{OffsetsError, Resolved, resolve},
};
use aya::{
    Btf, BtfError, Ebpf, EbpfError, EbpfLoader,
    maps::{Array, HashMap, MapData, MapError},
    programs::{BtfTracePoint, Iter, ProgramError, links::LinkError},
};
use node_agent_ebpf::{ABSENT, CgroupId, CgroupName, Key, MAX_CGROUP_DEPTH, MAX_FOLDED, Task, Totals, control};
use std::{fs::File, io::Read as _};

static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("NODE_AGENT_EBPF_OBJECT"));
const DROPS: [&str; 4] = ["fold_overflow", "untracked_tasks", "oom_victims", "unreadable_tasks"];
/// The iterator fills at most this much per read system call.
const READ_BYTES: usize = 64 * 1024;

/// Why the object does not run.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// There is nothing to load.
    #[error("this agent was built without its programs for the kernel (BPF_CARGO=none)")]
    NotBuilt,
    /// Offsets are unknown.
    #[error(transparent)]
    Offsets(#[from] OffsetsError),
    /// aya cannot read the kernel's types.
    #[error("the kernel's type information is not understood: {0}")]
    Btf(#[from] BtfError),
    /// The kernel refuses the object's maps.
    #[error("the object does not load: {0}")]
    Load(#[from] EbpfError),
    /// The kernel refuses a program.
    #[error("program {name} does not load or attach: {source}")]
    Program {
        /// Its name in the object.
        name: &'static str,
        /// What the kernel said.
        source: Box<ProgramError>,
    },
    /// The iterator gives no file.
    #[error("the iterator does not open: {0}")]
    Iterator(#[from] LinkError),
    /// The object lacks a part: the build is broken.
    #[error("the embedded object has no {0}")]
    Incomplete(&'static str),
    /// A map cannot be read or written.
    #[error("a map of the object cannot be used: {0}")]
    Map(#[from] MapError),
    /// The iterator's file cannot be read.
    #[error("the task iterator cannot be read: {0}")]
    Read(#[source] std::io::Error),
}

impl ObjectError {
    /// Whether the kernel could and only the agent may not.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            if kind == Some(std::io::ErrorKind::PermissionDenied) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

/// The loaded object. Dropping it detaches every program.
pub struct Object {
    folded: HashMap<MapData, Key, Totals>,
    rest: Array<MapData, Totals>,
    control: Array<MapData, u64>,
    dropped: Array<MapData, u64>,
    cgroups: HashMap<MapData, CgroupId, CgroupName>,
    buffer: u64,
    resolved: Resolved,
    /// Why out-of-memory kills are not counted, if they are not.
    pub oom_error: Option<ObjectError>,
    chunk: Vec<u8>,
    programs: Ebpf,
}

fn attach(ebpf: &mut Ebpf, name: &'static str, tracepoint: &str, btf: &Btf) -> Result<(), ObjectError> {
    let failed = |source| ObjectError::Program { name, source: Box::new(source) };
    let program = ebpf.program_mut(name).ok_or(ObjectError::Incomplete(name))?;
    let program: &mut BtfTracePoint = program.try_into().map_err(failed)?;
    program.load(tracepoint, btf).map_err(failed)?;
    program.attach().map_err(failed)?;
    Ok(())
}

fn iterator_failed(source: ProgramError) -> ObjectError {
    ObjectError::Program { name: "tasks", source: Box::new(source) }
}

fn iterator(ebpf: &mut Ebpf) -> Result<&mut Iter, ObjectError> {
    ebpf.program_mut("tasks").ok_or(ObjectError::Incomplete("tasks"))?.try_into().map_err(iterator_failed)
}

impl Object {
    /// Loads and attaches everything; activity counts from here on.
    ///
    /// # Errors
    /// See [`ObjectError`]. Without the out-of-memory tracepoint it goes on: [`Object::oom_error`].
    pub fn load(count_from_boottime_ns: u64) -> Result<Self, ObjectError> {
        if OBJECT.is_empty() {
            return Err(ObjectError::NotBuilt);
        }
        let resolved = resolve(count_from_boottime_ns)?;
        tracing::debug!(offsets = ?resolved.offsets, "layout of this kernel");
        let btf = Btf::from_sys_fs()?;
        let mut ebpf =
            EbpfLoader::new().btf(Some(&btf)).override_global("OFFSETS", &resolved.offsets, true).load(OBJECT)?;

        iterator(&mut ebpf)?.load("task", &btf).map_err(iterator_failed)?;
        attach(&mut ebpf, "process_free", "sched_process_free", &btf)?;
        attach(&mut ebpf, "process_fork", "sched_process_fork", &btf)?;
        attach(&mut ebpf, "process_exec", "sched_process_exec", &btf)?;
        if resolved.exit_shows_memory {
            attach(&mut ebpf, "process_exit", "sched_process_exit", &btf)?;
        }
        let oom_error = if resolved.has_mark_victim {
            attach(&mut ebpf, "mark_victim", "mark_victim", &btf).err()
        } else {
            Some(ObjectError::Incomplete("understood shape of the tracepoint mark_victim on this kernel"))
        };
        let mut map = |name| ebpf.take_map(name).ok_or(ObjectError::Incomplete(name));
        Ok(Self {
            folded: map("FOLDED")?.try_into()?,
            rest: map("REST")?.try_into()?,
            control: map("CONTROL")?.try_into()?,
            dropped: map("DROPPED")?.try_into()?,
            cgroups: map("CGROUPS")?.try_into()?,
            buffer: 0,
            resolved,
            oom_error,
            chunk: vec![0; READ_BYTES],
            programs: ebpf,
        })
    }

    /// Whether this kernel keeps storage traffic per task.
    #[must_use]
    pub fn has_disk_bytes(&self) -> bool {
        self.resolved.offsets.task_read_bytes != ABSENT && self.resolved.offsets.task_write_bytes != ABSENT
    }

    /// Whether peaks of living processes can be read.
    #[must_use]
    pub fn has_memory_peak(&self) -> bool {
        ![self.resolved.offsets.mm_hiwater_rss, self.resolved.offsets.mm_rss].contains(&ABSENT)
    }

    /// Whether peaks of processes that die between two readings can be read, too.
    #[must_use]
    pub fn has_memory_peak_of_the_dead(&self) -> bool {
        self.has_memory_peak() && self.resolved.exit_shows_memory
    }

    /// Whether a task's cgroup can be read.
    #[must_use]
    pub fn has_cgroups(&self) -> bool {
        let offsets = self.resolved.offsets;
        ![offsets.task_cgroups, offsets.css_set_v2, offsets.cgroup_kn, offsets.kn_id].contains(&ABSENT)
    }

    /// What happened since the last reading, and who lives now.
    ///
    /// # Errors
    /// If the kernel refuses a read. What was read until then is lost, which the caller must count.
    pub fn read(&mut self) -> Result<Ledger, ObjectError> {
        let mut ledger = Ledger::default();
        self.read_living(&mut ledger)?;
        self.read_dead(&mut ledger)?;
        for (index, name) in (0..).zip(DROPS) {
            ledger.drops.push((name, self.dropped.get(&index, 0)?));
        }
        Ok(ledger)
    }

    /// The path of a cgroup in which a program was started, also if it is gone by now.
    #[must_use]
    pub fn cgroup_path(&self, tree: u8, id: u64) -> Option<String> {
        const ROOT_ID: u64 = 1;
        let mut at = CgroupId { id, hierarchy: u64::from(tree) };
        let mut parts = Vec::new();
        while at.id != ROOT_ID {
            let found = self.cgroups.get(&at, 0).ok()?;
            let end = found.name.iter().position(|byte| *byte == 0).unwrap_or(found.name.len());
            parts.push(String::from_utf8_lossy(found.name.get(..end)?).into_owned());
            at.id = found.parent_id;
            if parts.len() > MAX_CGROUP_DEPTH {
                return None;
            }
        }
        Some(parts.iter().rev().fold(String::new(), |path, part| path + "/" + part))
    }

    /// A fresh iterator over all tasks; the kernel's file cannot be rewound.
    fn open_iterator(&mut self) -> Result<File, ObjectError> {
        let iterator = iterator(&mut self.programs)?;
        let link = iterator.attach().map_err(iterator_failed)?;
        Ok(iterator.take_link(link).map_err(iterator_failed)?.into_file()?)
    }

    fn read_living(&mut self, ledger: &mut Ledger) -> Result<(), ObjectError> {
        let mut file = self.open_iterator()?;
        let mut held = 0;
        loop {
            let count = match file.read(&mut self.chunk[held..]) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ObjectError::Read(error)),
            };
            held += count;
            let whole = held - held % size_of::<Task>();
            for bytes in self.chunk[..whole].chunks_exact(size_of::<Task>()) {
                // SAFETY: `bytes` holds exactly one Task, which is plain integers; no alignment is asked for.
                let task = unsafe { bytes.as_ptr().cast::<Task>().read_unaligned() };
                book_living(ledger, &task);
            }
            self.chunk.copy_within(whole..held, 0);
            held -= whole;
        }
    }

    fn read_dead(&mut self, ledger: &mut Ledger) -> Result<(), ObjectError> {
        let old = self.buffer;
        self.buffer = 1 - old;
        self.control.set(control::BUFFER, self.buffer, 0)?;
        wait_for_programs();
        // The map of the other buffer's entries grows meanwhile: bounded, so that a storm of keys cannot hold us here.
        let keys: Vec<Key> = (self.folded.keys().take(2 * MAX_FOLDED as usize))
            .filter_map(Result::ok)
            .filter(|key| u64::from(key.buffer) == old)
            .collect();
        for key in keys {
            // A second look under the same key finds nothing: the walk restarts when an entry vanishes under it.
            let Ok(totals) = self.folded.get(&key, 0) else { continue };
            self.folded.remove(&key)?;
            add_totals(&mut ledger.share(key).totals, &totals);
        }
        for kernel in 0..2_u32 {
            let index = u32::from(old == 1) * 2 + kernel;
            ledger.rest[kernel as usize] = self.rest.get(&index, 0)?;
            self.rest.set(index, Totals::default(), 0)?;
        }
        Ok(())
    }
}

fn book_living(ledger: &mut Ledger, task: &Task) {
    let share = ledger.share(task.key);
    add_totals(
        &mut share.totals,
        &Totals {
            cpu_ns: task.new_cpu_ns,
            disk_read_bytes: task.new_disk_read_bytes,
            disk_written_bytes: task.new_disk_written_bytes,
            peak_resident_bytes: task.peak_resident_bytes,
            ..Totals::default()
        },
    );
    share.live_processes = share.live_processes.saturating_add(task.process);
    share.live_threads = share.live_threads.saturating_add(task.thread);
}

/// Returns when every program that was running has finished: `MEMBARRIER_CMD_GLOBAL` waits for an RCU grace period,
/// and programs run inside RCU read sections. Kernels with `nohz_full` refuse it; there a pause that is longer than
/// any program by four orders of magnitude stands in.
fn wait_for_programs() {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: the call takes three integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
