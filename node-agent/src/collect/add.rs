//! Adds what the tasks of each key did: under its workload, and under its run.

use super::{Sampler, TaskCounters};
use crate::{
    host::shipped::Shipped,
    model::{Delta, Deltas, Moment, comm_text},
    procfs::place::telling,
    workload::{Class, Origin, Traits, classify, runs::Owner},
};
use node_agent_ebpf::{Executable, Key, counter, hierarchy};
use std::collections::HashSet;

/// What the distribution says of one process.
pub(super) struct OriginOf<'a> {
    pub(super) shipped: &'a mut Shipped,
    pub(super) executable: Executable,
}

impl Origin for OriginOf<'_> {
    fn file_name(&mut self) -> Option<String> {
        let path = self.shipped.locate(&self.executable)?;
        path.rsplit('/').next().map(str::to_owned)
    }

    fn is_own_file(&mut self) -> bool {
        self.shipped.is_own(&self.executable)
    }

    fn is_own_unit(&mut self, unit: &str) -> bool {
        self.shipped.has_unit(unit)
    }

    fn ships_crontabs(&mut self) -> bool {
        self.shipped.has_crontabs()
    }
}

/// The cgroups that a key names, in both trees.
fn cgroups_of(key: &Key) -> [(u8, u64); 2] {
    let unified = if key.cgroup_id == 0 { hierarchy::ROOT } else { hierarchy::V2 };
    [(unified, key.cgroup_id), (key.hierarchy, key.cgroup_v1_id)]
}

impl Sampler {
    /// Adds one sample.
    pub(super) fn add_sample(&mut self, deltas: &Deltas) {
        self.begin(deltas);
        self.add(deltas);
        self.end();
    }

    /// Nobody has been seen alive yet.
    pub(super) fn begin(&mut self, deltas: &Deltas) {
        self.cgroups.keep(&deltas.by_key.keys().flat_map(cgroups_of).collect());
        self.rows.begin();
        if let TaskCounters::Ebpf(object) = &self.task_counters {
            let facts = object.watcher().read(|run| self.runs.knows(run));
            facts.into_iter().for_each(|fact| self.runs.tell(fact));
        }
        self.runs.begin(Moment::now().boottime_ns);
        self.shipped.begin(&self.rules.housekeeping.paths);
        self.containers.begin();
    }

    /// Each row gets its caption.
    pub(super) fn end(&mut self) {
        self.rows.end();
        self.runs.end();
        self.names.refresh(&self.rules, self.rows.iter().map(|(_, key, _)| key));
    }

    /// Adds what the tasks of each key did.
    pub(super) fn add(&mut self, deltas: &Deltas) {
        if let TaskCounters::Ebpf(object) = &self.task_counters {
            let wanted: HashSet<(u8, u64)> = deltas.by_key.keys().flat_map(cgroups_of).collect();
            self.cgroups.learn(&wanted, |tree, id| object.cgroup_path(tree, id));
        }
        let knows_cgroups = self.statuses().measured.cgroups;
        let (shipped, containers) = (&mut self.shipped, &mut self.containers);
        let mut whose = |key: &Key| {
            let path = match &deltas.paths {
                Some(paths) => paths.get(&key.cgroup_id).map(String::as_str),
                // Of a process that has lost its place in one tree nobody knows which of the two would tell more.
                None if knows_cgroups => {
                    let [unified, v1] = cgroups_of(key).map(|(tree, id)| self.cgroups.path(tree, id));
                    unified.zip(v1).map(|(unified, v1)| telling(&self.rules.housekeeping, unified, v1))
                }
                None => None,
            };
            let name = comm_text(&key.comm);
            let traits = Traits {
                uid: key.uid,
                is_kernel_thread: key.kernel_thread == 1,
                is_own: key.own == 1,
                cgroup_path: path,
                is_upkeep_container: path.is_some_and(|path| containers.is_upkeep(&self.rules.housekeeping, path)),
            };
            let mut origin = OriginOf { shipped: &mut *shipped, executable: key.executable };
            let class = classify(&self.rules.housekeeping, &traits, &mut origin);
            (
                Owner {
                    task_id: key.task_id,
                    class,
                    path,
                    job: path.and_then(|path| self.names.job(&self.rules, path)),
                },
                name,
            )
        };
        for (key, delta) in &deltas.by_key {
            let (owner, name) = whose(key);
            let cpu_ns = delta.totals.counters[counter::CPU_NS];
            self.lost_cpu.account(key, owner.class, cpu_ns, |tree, id| self.cgroups.path(tree, id));
            self.rows.add(owner.class, owner.path, &name, delta);
            self.runs.add(&owner, self.rules.tools.shown(&name), delta);
        }
        for (key, wait_status, count) in &deltas.failures {
            let (owner, name) = whose(key);
            self.rows.add_failures(owner.class, owner.path, *wait_status, *count);
            self.runs.add_failures(&owner, self.rules.tools.shown(&name), *wait_status, *count);
        }
        for (class, delta) in [Class::Workload, Class::Kernel].into_iter().zip(&deltas.overflow) {
            if *delta != Delta::default() {
                self.lost_cpu.account_elsewhere(class, delta.totals.counters[counter::CPU_NS]);
                self.rows.add(class, None, "", delta);
            }
        }
    }
}
