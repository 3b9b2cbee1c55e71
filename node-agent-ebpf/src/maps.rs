//! Every map of the object, in one place, so that its memory can be added up: 2.1 MB fixed, and about 100 bytes for
//! each living task.

use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    macros::map,
    maps::{Array, HashMap, LruHashMap},
};
use node_agent_ebpf::{
    Accounted, CgroupId, CgroupName, Key, MAX_CGROUPS, MAX_FOLDED, MAX_TRACKED, MAX_VICTIMS, Totals, control, dropped,
};

/// What ended, began or was killed since the agent last turned the buffers.
#[map]
pub(crate) static FOLDED: HashMap<Key, Totals> = HashMap::with_max_entries(MAX_FOLDED, 0);

/// What found no place in [`FOLDED`]: index = 2 × buffer + kernel thread.
#[map]
pub(crate) static REST: Array<Totals> = Array::with_max_entries(4, 0);

/// What the iterator has accounted of each living task, by the task's address, which is unique until it is freed.
#[map]
pub(crate) static ACCOUNTED: HashMap<u64, Accounted> = HashMap::with_max_entries(MAX_TRACKED, BPF_F_NO_PREALLOC);

/// Threads marked by the out-of-memory killer, until they die.
#[map]
pub(crate) static VICTIMS: HashMap<u32, u8> = HashMap::with_max_entries(MAX_VICTIMS, 0);

/// See [`control`].
#[map]
pub(crate) static CONTROL: Array<u64> = Array::with_max_entries(control::LEN, 0);

/// See [`dropped`].
#[map]
pub(crate) static DROPPED: Array<u64> = Array::with_max_entries(dropped::LEN, 0);

/// Names of cgroups in which programs were started.
#[map]
pub(crate) static CGROUPS: LruHashMap<CgroupId, CgroupName> = LruHashMap::with_max_entries(MAX_CGROUPS, 0);
