//! Where a task stands in the cgroup trees, and what that place is called.
//!
//! `bpf_get_current_cgroup_id` is refused: on a host that still has version 1 trees it answers 1 for everything. Names are
//! kept from the first process or program on that begins a row, because a unit that logrotate ran in is gone before the next sample.

use crate::{
    fields::{Address, offset},
    maps::CGROUPS,
};
use aya_ebpf::{bindings::BPF_NOEXIST, helpers::bpf_probe_read_kernel_str_bytes};
use node_agent_ebpf::{ABSENT, CGROUP_NAME_BYTES, CgroupId, CgroupName, Key, MAX_CGROUP_DEPTH, hierarchy};

/// The root of every kernfs tree has inode number 1.
const ROOT_ID: u64 = 1;

#[inline(always)]
fn node_of_subsystem<const TYPED: bool>(css_set: Address<TYPED>, at: u32) -> Option<Address<TYPED>> {
    css_set.follow(at)?.follow(offset!(css_cgroup))?.follow(offset!(cgroup_kn))
}

/// The directory of the task in one tree.
#[inline(always)]
fn node<const TYPED: bool>(css_set: Address<TYPED>, tree: u8) -> Option<Address<TYPED>> {
    match tree {
        hierarchy::V2 => css_set.follow(offset!(css_set_v2))?.follow(offset!(cgroup_kn)),
        hierarchy::V1_CPUACCT => node_of_subsystem(css_set, offset!(css_set_cpuacct)),
        _ => node_of_subsystem(css_set, offset!(css_set_pids)),
    }
}

#[inline(always)]
fn id<const TYPED: bool>(node: Option<Address<TYPED>>) -> u64 {
    node.and_then(|node| node.read(offset!(kn_id))).unwrap_or(ROOT_ID)
}

/// Fills the key's cgroups: in the version 2 tree, and where there are version 1 trees in the one that knows more. A host may have both: then a
/// container's own path may stand in one tree alone, behind its engine's in the other.
#[inline(always)]
pub(crate) fn place<const TYPED: bool>(task: Address<TYPED>, key: &mut Key) {
    let Some(css_set) = task.follow(offset!(task_cgroups)) else { return };
    let unified = id(node(css_set, hierarchy::V2));
    if unified > ROOT_ID {
        key.cgroup_id = unified;
    }
    let mut tree = hierarchy::V1_CPUACCT;
    let mut found = if offset!(css_set_cpuacct) == ABSENT { ROOT_ID } else { id(node(css_set, tree)) };
    if found <= ROOT_ID && offset!(css_set_pids) != ABSENT {
        tree = hierarchy::V1_PIDS;
        found = id(node(css_set, tree));
    }
    if found > ROOT_ID {
        key.cgroup_v1_id = found;
        key.hierarchy = tree;
    }
}

/// Remembers the names from the task's cgroups up to the root, or up to the first that is known.
#[inline(always)]
pub(crate) fn remember_names<const TYPED: bool>(task: Address<TYPED>, key: &Key) {
    if key.cgroup_id != 0 {
        remember_names_in(task, hierarchy::V2, key.cgroup_id);
    }
    if key.cgroup_v1_id != 0 {
        remember_names_in(task, key.hierarchy, key.cgroup_v1_id);
    }
}

#[inline(always)]
fn remember_names_in<const TYPED: bool>(task: Address<TYPED>, tree: u8, own_id: u64) {
    let mut next = task.follow(offset!(task_cgroups)).and_then(|css_set| node(css_set, tree));
    let mut at = CgroupId { id: own_id, hierarchy: u64::from(tree) };
    for _ in 0..MAX_CGROUP_DEPTH {
        let Some(node) = next else { return };
        if at.id <= ROOT_ID || CGROUPS.get_ptr(&at).is_some() {
            return;
        }
        let parent = node.follow(offset!(kn_parent));
        let mut entry = CgroupName { parent_id: id(parent), name: [0; CGROUP_NAME_BYTES] };
        let Some(name) = node.follow(offset!(kn_name)) else { return };
        // SAFETY: the helper checks the address and writes at most the buffer's length.
        let _ = unsafe { bpf_probe_read_kernel_str_bytes(name.number() as *const u8, &mut entry.name) };
        let _ = CGROUPS.insert(&at, &entry, u64::from(BPF_NOEXIST));
        at.id = entry.parent_id;
        next = parent;
    }
}
