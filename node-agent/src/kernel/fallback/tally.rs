//! One sample, put together from `/proc`, the records of the kernel and the tracepoints' counts. ◇ Plain data.

use super::{
    dead::Dead,
    proc::{Place, Process, Scan, Whose},
};
use crate::{
    model::{Ledger, Share, add_totals},
    procfs::cgroups::Cgroups,
};
use node_agent_ebpf::{
    Executable, Key, Totals,
    births::{Birth, Counts},
    hierarchy,
};
use std::{collections::HashMap, sync::Arc};

pub(super) fn add_counts(to: &mut Totals, counts: Counts) {
    let Counts { forks, execs, exits } = counts;
    add_totals(to, &Totals { forks, execs, exits, ..Totals::default() });
}

/// How the living are booked.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// This is not the baseline.
    pub(super) has_read: bool,
    /// Records tell who ended: what `/proc` still shows of such a process is booked already.
    pub(super) sees_ends: bool,
    /// Who is new counts as a birth.
    pub(super) counts_here: bool,
}

/// The reading that is being put together.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) ledger: Ledger,
    /// Numbers for cgroup paths, as [`Ledger::paths`] wants them.
    ids: HashMap<Arc<str>, u64>,
}

impl Books {
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

    fn share(&mut self, whose: &Whose) -> &mut Share {
        let key = self.key(whose);
        self.ledger.share(key)
    }

    pub(super) fn book_living(&mut self, scan: &Scan, before: &HashMap<u32, Process>, rules: Rules) {
        for (pid, process) in &scan.processes {
            if process.is_dead && rules.sees_ends {
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
            let share = self.share(&process.whose);
            add_totals(&mut share.totals, &totals);
            if !process.is_dead {
                share.resident_bytes = share.resident_bytes.saturating_add(process.resident_bytes);
                share.live_processes = share.live_processes.saturating_add(1);
                share.live_threads = share.live_threads.saturating_add(process.threads);
            }
        }
    }

    pub(super) fn book_dead(&mut self, dead: &mut Dead, rules: Rules) {
        let (by_key, rest, failures) = dead.take();
        // Who died before the baseline is nobody's activity.
        if !rules.has_read {
            return;
        }
        let counted = |totals: Totals| if rules.counts_here { totals } else { Totals { forks: 0, exits: 0, ..totals } };
        for (whose, totals) in by_key {
            add_totals(&mut self.share(&whose).totals, &counted(totals));
        }
        for (to, totals) in self.ledger.rest.iter_mut().zip(rest) {
            add_totals(&mut to.totals, &counted(totals));
        }
        for ((whose, wait_status), count) in failures {
            let key = self.key(&whose);
            self.ledger.failures.push((key, wait_status, count));
        }
    }

    pub(super) fn book_births(
        &mut self,
        births: &[(Birth, Counts)],
        cgroups: &Cgroups,
        place: impl Fn(u32) -> Option<Place>,
    ) {
        /// The root of every tree.
        const ROOT_ID: u64 = 1;
        for (birth, counts) in births {
            let owner = place(birth.owner).unwrap_or_default();
            let path = match birth.cgroup_id {
                0 => owner.path,
                ROOT_ID => Some("/".into()),
                id => cgroups.path(hierarchy::V2, id).map(Arc::from).or(owner.path),
            };
            // Who starts a process does so itself; which program another one became nobody has seen.
            let is_itself = counts.execs == 0 && counts.exits == 0;
            let executable = if is_itself { owner.executable } else { Executable::default() };
            let whose = Whose {
                path,
                uid: birth.uid,
                comm: birth.comm,
                executable,
                is_kernel_thread: birth.kernel_thread == 1,
                is_own: birth.owner == std::process::id(),
            };
            add_counts(&mut self.share(&whose).totals, *counts);
        }
    }

    pub(super) fn ledger(self, drops: Vec<(&'static str, u64)>) -> Ledger {
        let paths = self.ids.into_iter().map(|(path, id)| (id, path.to_string())).collect();
        Ledger { paths: Some(paths), drops, ..self.ledger }
    }
}

pub(super) fn place_in(processes: &HashMap<u32, Process>, pid: u32) -> Option<Place> {
    let place = |process: &Process| Place { path: process.whose.path.clone(), executable: process.whose.executable };
    processes.get(&pid).map(place)
}
