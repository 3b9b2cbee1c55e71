//! The lifecycle of the object inside the kernel: load, attach, read, and (on drop) detach.
//!
//! A sample takes one pass of the iterator and one pass over the map of exited tasks. The map has two buffers: the agent
//! swaps them, waits until no program is still at work in the old one (`membarrier`, a few milliseconds without CPU
//! time), and only then reads and empties it, so that no event is lost in between.

use super::{
    Wanted,
    attach::Attached,
    bpf,
    drain::Drain,
    error::ObjectError,
    events::Watcher,
    loader::{self, Handover},
    timed::ends_by_timer,
};
use crate::{
    model::{Deltas, Moment, Statuses, add_totals, earlier},
    workload::engines::Engines,
};
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use node_agent_ebpf::{
    CgroupId, CgroupName, Cost, Executable, Failure, Key, MAX_CGROUP_DEPTH, MAX_PROCESSES, Process, Task, Totals,
    control, counter,
};
use std::{
    io::Read as _,
    os::fd::{AsFd as _, OwnedFd},
};

/// In the order of [`node_agent_ebpf::dropped`]. What begins with `detail_` is counted all the same, under less than its full name.
const DROPS: [&str; 7] = [
    "detail_map_overflow",
    "untracked_tasks",
    "oom_victims",
    "unreadable_tasks",
    "detail_failures",
    "untracked_network",
    "missed_exits",
];
/// The iterator fills at most this much per read system call.
const READ_BYTES: usize = 64 * 1024;

/// The loaded object. Dropping it detaches every program.
pub struct Object {
    aggregated: Drain<Key, Totals>,
    failures: Drain<Failure, u64>,
    overflow: Array<MapData, Totals>,
    control: Array<MapData, u64>,
    dropped: Array<MapData, u64>,
    cost: PerCpuArray<MapData, Cost>,
    cgroups: HashMap<MapData, CgroupId, CgroupName>,
    processes: Array<MapData, Process>,
    buffer: u64,
    statuses: Statuses,
    watcher: Watcher,
    chunk: Vec<u8>,
    iterator: OwnedFd,
    /// The scheduler's clock and the boot clock at the last sample.
    clocks: Clocks,
    programs: Vec<Attached>,
    /// What it measures with everything attached.
    in_full: Statuses,
    runs_are_off: Option<String>,
}

impl Object {
    /// Loads and attaches everything, in a process of its own; activity counts from here on.
    ///
    /// # Errors
    /// See [`ObjectError`]. A program without which the rest can go on is no error: [`Object::statuses`].
    pub fn load(wanted: &Wanted) -> Result<Self, ObjectError> {
        let Handover { statuses, mut maps, iterator, attached } = loader::load(wanted)?;
        let watcher = Watcher::start(&mut maps, Engines::default())?;
        let mut map = |name| maps.remove(name).ok_or(ObjectError::Incomplete(name));
        Ok(Self {
            aggregated: Drain::of(map("AGGREGATED")?)?,
            failures: Drain::of(map("FAILURES")?)?,
            overflow: map("OVERFLOW")?.try_into()?,
            control: map("CONTROL")?.try_into()?,
            dropped: map("DROPPED")?.try_into()?,
            cost: map("COST")?.try_into()?,
            cgroups: map("CGROUPS")?.try_into()?,
            processes: map("PROCESSES")?.try_into()?,
            buffer: 0,
            in_full: statuses.clone(),
            runs_are_off: None,
            statuses,
            watcher,
            chunk: vec![0; READ_BYTES],
            iterator,
            clocks: Clocks::default(),
            programs: attached,
        })
    }

    /// Whether maps and iterator can be used with the rights that are left. Reads nothing: no news gets lost.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.control.get(&control::BUFFER, 0).is_ok() && bpf::open_iterator(self.iterator.as_fd()).is_ok()
    }

    /// Detaches every program: nothing is counted until [`Object::attach`].
    pub fn detach(&mut self) {
        for program in &mut self.programs {
            // To detach is to close a descriptor, which does not fail.
            let _ = program.set(false);
        }
        self.watcher.forget();
    }

    /// Attaches every program, but those that serve one of these capabilities alone; `reason` says why not those.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn attach(&mut self, without: &[&str], reason: &str) -> Result<(), ObjectError> {
        for program in &mut self.programs {
            let is_wanted = program.capability().is_none_or(|capability| !without.contains(&capability));
            program.set(is_wanted).map_err(|source| ObjectError::Attach { name: program.name().to_owned(), source })?;
        }
        self.statuses = self.in_full.clone();
        for capability in without {
            self.statuses.shed(capability, reason);
        }
        self.follow_runs(!without.contains(&"pipelines"), reason)
    }

    /// Whether runs of pipelines are followed from here on. Where they were not, the next sample looks at who lives.
    fn follow_runs(&mut self, is_on: bool, reason: &str) -> Result<(), ObjectError> {
        if is_on != self.runs_are_off.is_some() {
            return Ok(());
        }
        self.control.set(control::RUNS_ARE_OFF, u64::from(!is_on), 0)?;
        self.runs_are_off = (!is_on).then(|| reason.to_owned());
        // What a program that runs right now enters is forgotten, too.
        wait_for_programs();
        self.watcher.follow(is_on);
        Ok(())
    }

    /// Why runs of pipelines are not followed; `None` if they are.
    #[must_use]
    pub fn runs_are_off(&self) -> Option<&str> {
        self.runs_are_off.as_deref()
    }

    /// What it measures, and why not the rest.
    #[must_use]
    pub fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// What is learnt about runs of pipelines.
    #[must_use]
    pub fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// What happened since the last sample, and who lives now.
    ///
    /// # Errors
    /// If the kernel refuses a read. What was read until then is lost, which the caller must count.
    pub fn read(&mut self) -> Result<Deltas, ObjectError> {
        self.read_and(|| ())
    }

    /// The same; `is_due` is called at the moment from which on everything belongs to the next sample.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn read_and(&mut self, is_due: impl FnOnce()) -> Result<Deltas, ObjectError> {
        let mut deltas = Deltas::default();
        self.read_living(&mut deltas)?;
        self.read_ended(&mut deltas, is_due)?;
        for (index, name) in (0..).zip(DROPS) {
            deltas.drops.push((name, self.dropped.get(&index, 0)?));
        }
        let missed = self.programs.iter().map(|program| bpf::missed_runs(program.program.as_fd()));
        deltas.drops.push(("missed_runs", missed.sum::<std::io::Result<u64>>().map_err(ObjectError::Read)?));
        deltas.drops.extend(self.watcher.drops());
        let costs = self.cost.get(&0, 0)?;
        deltas.programs = Some(costs.iter().fold((0, 0), |(ns, runs), cost| (ns + cost.ns, runs + cost.runs)));
        Ok(deltas)
    }

    /// The file that a process executes, as the kernel knew it when the process started it or at the last sample; `None` if that
    /// is not remembered.
    #[must_use]
    pub fn executable_of(&self, pid: u32) -> Option<Executable> {
        let known = self.processes.get(&(pid & (MAX_PROCESSES - 1)), 0).ok()?;
        (known.tgid == pid && known.start_boottime_ns != 0).then_some(known.executable)
    }

    /// Counts this living child of the agent for the agent itself.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn know_helper(&mut self, pid: u32) -> Result<(), ObjectError> {
        Ok(self.control.set(control::HELPER_TGID, u64::from(pid), 0)?)
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

    fn read_living(&mut self, deltas: &mut Deltas) -> Result<(), ObjectError> {
        // A fresh one each time: the kernel's file cannot be rewound.
        let mut file = bpf::open_iterator(self.iterator.as_fd()).map_err(ObjectError::Read)?;
        let (mut held, mut clocks) = (0, Clocks { scheduler_ns: 0, boottime_ns: Moment::now().boottime_ns });
        loop {
            let count = match file.read(&mut self.chunk[held..]) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ObjectError::Read(error)),
            };
            held += count;
            let whole = held - held % size_of::<Task>();
            for bytes in self.chunk[..whole].chunks_exact(size_of::<Task>()) {
                // SAFETY: `bytes` holds exactly one Task, which is plain integers; no alignment is asked for.
                let task = unsafe { bytes.as_ptr().cast::<Task>().read_unaligned() };
                clocks.scheduler_ns = clocks.scheduler_ns.max(task.last_arrival_ns);
                add_living(deltas, &task, &self.clocks);
            }
            self.chunk.copy_within(whole..held, 0);
            held -= whole;
        }
        self.clocks = clocks;
        for delta in deltas.by_key.values_mut().chain(&mut deltas.overflow) {
            delta.last_ran_boottime_ns = clocks.to_boottime(delta.last_ran_boottime_ns);
            delta.timed_since_boottime_ns = delta.timed_since_boottime_ns.map(|since| clocks.to_boottime(since));
        }
        Ok(())
    }

    /// Adds what ended since this was read last; `is_due` as for [`Object::read_and`].
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn read_ended(&mut self, deltas: &mut Deltas, is_due: impl FnOnce()) -> Result<(), ObjectError> {
        let old = self.buffer;
        self.buffer = 1 - old;
        self.control.set(control::BUFFER, self.buffer, 0)?;
        is_due();
        wait_for_programs();
        let boottime_ns = self.clocks.boottime_ns;
        self.aggregated.take(
            |key| u64::from(key.buffer) == old,
            |key, totals| {
                let delta = deltas.delta(key);
                add_totals(&mut delta.totals, &totals);
                if totals.counters[counter::CPU_NS] > 0 {
                    delta.last_ran_boottime_ns = boottime_ns;
                }
            },
        )?;
        self.failures.take(
            |failure| u64::from(failure.key.buffer) == old,
            |failure, count| deltas.failures.push((Key { buffer: 0, ..failure.key }, failure.wait_status, count)),
        )?;
        for kernel in 0..2_u32 {
            let index = u32::from(old == 1) * 2 + kernel;
            add_totals(&mut deltas.overflow[kernel as usize].totals, &self.overflow.get(&index, 0)?);
            self.overflow.set(index, Totals::default(), 0)?;
        }
        Ok(())
    }
}

/// The same moment by two clocks. The scheduler's has no name in user space, and it is not the monotonic one: it knows no correction. But the reader
/// itself has just been put onto a CPU, so whoever was put there last tells what it says now.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    scheduler_ns: u64,
    boottime_ns: u64,
}

impl Clocks {
    /// A moment of the scheduler's clock, in nanoseconds since boot; not later than these. 0 stays 0.
    fn to_boottime(self, scheduler_ns: u64) -> u64 {
        if scheduler_ns == 0 {
            return 0;
        }
        self.boottime_ns.saturating_sub(self.scheduler_ns.saturating_sub(scheduler_ns))
    }
}

/// When a task ran last, by the scheduler's clock: at its last arrival on a CPU or, if it has used any since the sample before, at most for so long
/// after that. Never too early, but for the one stretch that it may have run before the first sample.
fn last_ran(task: &Task, before: &Clocks) -> u64 {
    match task.new[counter::CPU_NS] {
        _ if task.state == 0 => u64::MAX,
        0 => task.last_arrival_ns,
        used_ns => task.last_arrival_ns.max(before.scheduler_ns).saturating_add(used_ns),
    }
}

fn add_living(deltas: &mut Deltas, task: &Task, before: &Clocks) {
    let delta = deltas.delta(task.key);
    if task.thread == 1 {
        delta.states.count(task.state, task.frozen);
        if ends_by_timer(task.call, task.arguments) {
            delta.timed_since_boottime_ns = earlier(delta.timed_since_boottime_ns, Some(task.last_arrival_ns));
        }
    }
    delta.last_ran_boottime_ns = delta.last_ran_boottime_ns.max(last_ran(task, before));
    let peak_resident_bytes = task.peak_resident_bytes;
    add_totals(&mut delta.totals, &Totals { counters: task.new, peak_resident_bytes, ..Totals::default() });
    delta.resident_bytes = delta.resident_bytes.saturating_add(task.resident_bytes);
    delta.live_processes = delta.live_processes.saturating_add(task.process);
    delta.live_threads = delta.live_threads.saturating_add(task.thread);
}

/// Returns when every program that was running has finished: `MEMBARRIER_CMD_GLOBAL` waits for an RCU grace period,
/// and programs run inside RCU read sections. Kernels with `nohz_full` refuse it; there a pause that is longer than
/// any program by four orders of magnitude stands in.
pub(super) fn wait_for_programs() {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: the call takes three integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
