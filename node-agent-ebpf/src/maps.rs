//! Every map of the object but those of runs (`lineage`), in one place, so that its memory can be added up: 5 MB fixed,
//! about 170 bytes for each living task, and about 150 more for each that uses the network.

use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray},
};
use node_agent_ebpf::{
    Accounted, CgroupId, CgroupName, Cost, Failure, Key, MAX_AGGREGATED, MAX_CGROUPS, MAX_FAILURES, MAX_OBSERVED,
    MAX_PROCESSES, MAX_TRACKED, MAX_VICTIMS, Observed, Process, Task, Totals, control, dropped, syscall_class,
};

/// What ended, began or was killed since the agent last swapped the buffers.
#[map]
pub(crate) static AGGREGATED: HashMap<Key, Totals> = HashMap::with_max_entries(MAX_AGGREGATED, 0);

/// What found no place in [`AGGREGATED`]: index = 2 × buffer + kernel thread.
#[map]
pub(crate) static OVERFLOW: Array<Totals> = Array::with_max_entries(4, 0);

/// Zeros to begin a row of [`AGGREGATED`] with: too large for a program's stack of 512 bytes.
#[map]
pub(crate) static ZERO: Array<Totals> = Array::with_max_entries(1, 0);

/// How processes ended, other than with exit code 0, since the agent last swapped the buffers.
#[map]
pub(crate) static FAILURES: HashMap<Failure, u64> = HashMap::with_max_entries(MAX_FAILURES, 0);

/// What the iterator has accounted of each living task, by the task's address, which is unique until it is freed.
#[map]
pub(crate) static ACCOUNTED: HashMap<u64, Accounted> = HashMap::with_max_entries(MAX_TRACKED, BPF_F_NO_PREALLOC);

/// What the programs have counted of each living task since the iterator came by, by the task's address.
#[map]
pub(crate) static OBSERVED: HashMap<u64, Observed> = HashMap::with_max_entries(MAX_OBSERVED, BPF_F_NO_PREALLOC);

/// How many entries of [`OBSERVED`] there are, by a hash of the address. Most tasks never use the network, and a lookup in a large map
/// that finds nothing takes some 400 ns, because its memory is cold.
#[map]
pub(crate) static OBSERVED_FILTER: Array<u64> = Array::with_max_entries(node_agent_ebpf::OBSERVED_FILTER, 0);

/// What every process that lived lately executes and is called, by the lowest bits of its id.
#[map]
pub(crate) static PROCESSES: Array<Process> = Array::with_max_entries(MAX_PROCESSES, 0);

/// Where the iterator puts a record together: too large for a program's stack.
#[map]
pub(crate) static RECORD: PerCpuArray<Task> = PerCpuArray::with_max_entries(1, 0);

/// Threads marked by the out-of-memory killer, until they exit.
#[map]
pub(crate) static VICTIMS: HashMap<u32, u8> = HashMap::with_max_entries(MAX_VICTIMS, 0);

/// See [`control`].
#[map]
pub(crate) static CONTROL: Array<u64> = Array::with_max_entries(control::LEN, 0);

/// See [`dropped`].
#[map]
pub(crate) static DROPPED: Array<u64> = Array::with_max_entries(dropped::LEN, 0);

/// The class of each system call, by its number.
#[map]
pub(crate) static CLASSES: Array<u64> = Array::with_max_entries(syscall_class::MAX_NUMBER as u32, 0);

/// What the programs cost.
#[map]
pub(crate) static COST: PerCpuArray<Cost> = PerCpuArray::with_max_entries(1, 0);

/// Names of cgroups in which programs were started.
#[map]
pub(crate) static CGROUPS: LruHashMap<CgroupId, CgroupName> = LruHashMap::with_max_entries(MAX_CGROUPS, 0);
