//! One sample, put together from `/proc`, the records of the kernel and the tracepoints' counts. ◇ Plain data.

use super::{
    exited::Exited,
    proc::{Place, Process, Scan, Whose},
};
use crate::{
    model::{Delta, Deltas, add_totals},
    procfs::cgroups::Cgroups,
};
use node_agent_ebpf::{
    Executable, Key, Totals, hierarchy,
    process_events::{Counts, ProcessEventKey},
};
use std::{collections::HashMap, sync::Arc};

pub(super) fn add_counts(to: &mut Totals, counts: Counts) {
    let Counts { forks, execs, exits } = counts;
    add_totals(to, &Totals { forks, execs, exits, ..Totals::default() });
}

/// How living processes are counted.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// This is not the baseline.
    pub(super) has_read: bool,
    /// Records tell who ended: what `/proc` still shows of such a process is counted already.
    pub(super) sees_ends: bool,
    /// Who is new counts as a fork.
    pub(super) counts_here: bool,
}

/// The sample that is being put together.
#[derive(Debug, Default)]
pub(super) struct DeltasBuilder {
    pub(super) deltas: Deltas,
    /// Numbers for cgroup paths, as [`Deltas::paths`] wants them.
    ids: HashMap<Arc<str>, u64>,
}

impl DeltasBuilder {
    /// Cgroup 0 has no path: that is a process of which nobody knows where it belongs.
    fn key(&mut self, whose: &Whose) -> Key {
        let next = self.ids.len() as u64 + 1;
        let cgroup_id = whose.path.clone().map_or(0, |path| *self.ids.entry(path).or_insert(next));
        Key {
            cgroup_id,
            cgroup_v1_id: 0,
            task_id: 0,
            executable: whose.executable,
            uid: whose.uid,
            hierarchy: hierarchy::ROOT,
            kernel_thread: u8::from(whose.is_kernel_thread),
            own: u8::from(whose.is_own),
            buffer: 0,
            comm: whose.comm,
        }
    }

    fn delta(&mut self, whose: &Whose) -> &mut Delta {
        let key = self.key(whose);
        self.deltas.delta(key)
    }

    pub(super) fn add_living(&mut self, scan: &Scan, before: &HashMap<u32, Process>, rules: Rules) {
        for (pid, process) in &scan.processes {
            if process.has_exited && rules.sees_ends {
                continue;
            }
            let was = before.get(pid).filter(|was| was.start_ticks == process.start_ticks);
            let news = match was {
                Some(was) => process.sums.since(was.sums),
                None if rules.has_read => process.sums,
                None => process.sums.since(process.sums),
            };
            let totals = Totals {
                peak_resident_bytes: process.peak_resident_bytes,
                forks: u64::from(rules.counts_here && rules.has_read && was.is_none()),
                ..news.totals()
            };
            let delta = self.delta(&process.whose);
            add_totals(&mut delta.totals, &totals);
            if !process.has_exited {
                delta.resident_bytes = delta.resident_bytes.saturating_add(process.resident_bytes);
                delta.live_processes = delta.live_processes.saturating_add(1);
                delta.live_threads = delta.live_threads.saturating_add(process.threads);
            }
        }
    }

    pub(super) fn add_exited(&mut self, exited: &mut Exited, rules: Rules) {
        let (by_key, overflow, failures) = exited.take();
        // Who exited before the baseline is nobody's activity.
        if !rules.has_read {
            return;
        }
        let counted = |totals: Totals| if rules.counts_here { totals } else { Totals { forks: 0, exits: 0, ..totals } };
        for (whose, totals) in by_key {
            add_totals(&mut self.delta(&whose).totals, &counted(totals));
        }
        for (to, totals) in self.deltas.overflow.iter_mut().zip(overflow) {
            add_totals(&mut to.totals, &counted(totals));
        }
        for ((whose, wait_status), count) in failures {
            let key = self.key(&whose);
            self.deltas.failures.push((key, wait_status, count));
        }
    }

    pub(super) fn add_process_events(
        &mut self,
        process_events: &[(ProcessEventKey, Counts)],
        cgroups: &Cgroups,
        place: impl Fn(u32) -> Option<Place>,
    ) {
        /// The root of every tree.
        const ROOT_ID: u64 = 1;
        for (key, counts) in process_events {
            let owner = place(key.owner).unwrap_or_default();
            let path = match key.cgroup_id {
                0 => owner.path,
                ROOT_ID => Some("/".into()),
                id => cgroups.path(hierarchy::V2, id).map(Arc::from).or(owner.path),
            };
            // Who starts a process does so itself; which program another one became nobody has seen.
            let is_itself = counts.execs == 0 && counts.exits == 0;
            let executable = if is_itself { owner.executable } else { Executable::default() };
            let whose = Whose {
                path,
                uid: key.uid,
                comm: key.comm,
                executable,
                is_kernel_thread: key.kernel_thread == 1,
                is_own: key.owner == std::process::id(),
            };
            add_counts(&mut self.delta(&whose).totals, *counts);
        }
    }

    pub(super) fn deltas(self, drops: Vec<(&'static str, u64)>) -> Deltas {
        let paths = self.ids.into_iter().map(|(path, id)| (id, path.to_string())).collect();
        Deltas { paths: Some(paths), drops, ..self.deltas }
    }
}

pub(super) fn place_in(processes: &HashMap<u32, Process>, pid: u32) -> Option<Place> {
    let place = |process: &Process| Place { path: process.whose.path.clone(), executable: process.whose.executable };
    processes.get(&pid).map(place)
}
