//! Books what the tasks of each key did: under its workload, and under its run.

use super::{Books, Collector};
use crate::{
    host::clock::Moment,
    kernel::{Ledger, Share, comm_text},
    workload::{Class, Traits, classify, runs::Owner},
};
use node_agent_ebpf::{Key, runs::INTERPRETED};

impl Collector {
    pub(super) fn book(&mut self, ledger: &Ledger) {
        if let Books::Ebpf(object) = &self.books {
            let wanted = ledger.shares.keys().map(|key| (key.hierarchy, key.cgroup_id)).collect();
            self.cgroups.refresh(&wanted, |tree, id| object.cgroup_path(tree, id));
        }
        let knows_cgroups = self.standing().measured.cgroups;
        self.rows.begin();
        if let Books::Ebpf(object) = &self.books {
            let facts = object.watcher().read(|run| self.runs.knows(run));
            facts.into_iter().for_each(|fact| self.runs.tell(fact));
        }
        self.runs.begin(Moment::now().boottime_ns);
        let whose = |key: &Key| {
            let path = match &ledger.paths {
                Some(paths) => paths.get(&key.cgroup_id).map(String::as_str),
                None if knows_cgroups => self.cgroups.path(key.hierarchy, key.cgroup_id),
                None => None,
            };
            let name = comm_text(&key.comm);
            // No script is housekeeping by a name that somebody gave it, as no interpreter is.
            let is_interpreted = key.kernel_thread & INTERPRETED != 0;
            let class = classify(
                &self.rules.housekeeping,
                &Traits {
                    name: if is_interpreted { "" } else { &name },
                    parent: &comm_text(&key.parent_comm),
                    uid: key.uid,
                    is_kernel_thread: key.kernel_thread == 1,
                    is_own: key.own == 1,
                    cgroup_path: path,
                },
            );
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
        for (key, share) in &ledger.shares {
            let (owner, name) = whose(key);
            self.rows.book(owner.class, owner.path, &name, share);
            self.runs.book(&owner, self.rules.tools.shown(&name), share);
        }
        for (key, wait_status, count) in &ledger.failures {
            let (owner, name) = whose(key);
            self.rows.book_failures(owner.class, owner.path, *wait_status, *count);
            self.runs.book_failures(&owner, self.rules.tools.shown(&name), *wait_status, *count);
        }
        for (class, share) in [Class::Workload, Class::Kernel].into_iter().zip(&ledger.rest) {
            if *share != Share::default() {
                self.rows.book(class, None, "", share);
            }
        }
        self.rows.end();
        self.runs.end();
        self.names.refresh(&self.rules, self.rows.iter().map(|(_, key, _)| key));
    }
}
