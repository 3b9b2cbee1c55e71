//! What is read once a heartbeat beside the tasks' counters: the cgroups' controllers, and which timers and crontabs exist.

use super::Sampler;
use crate::{
    coverage::{Capabilities, Status},
    host::{cgroup_usage::Usage, shipped::Existing},
    workload::Class,
};
use std::collections::BTreeMap;

impl Sampler {
    /// What the controllers say of the cgroups in which something lives. A cgroup is one, whatever classes its processes are of: it stands in the row of
    /// workload, if there is one.
    pub(super) fn cgroup_usage(&self, capabilities: &mut Capabilities) -> BTreeMap<(Class, String), Usage> {
        if !self.controllers.any() {
            capabilities.set(
                "cgroup_controllers",
                Status::NotApplicable,
                "no tree with the controllers cpu and memory is mounted",
            );
            return BTreeMap::new();
        }
        capabilities.ok("cgroup_controllers");
        // Workload is the least of the classes, so it comes first.
        let mut rows: BTreeMap<&str, Class> = BTreeMap::new();
        for (class, key, row) in self.rows.iter() {
            if key.len() > 1 && key.starts_with('/') && row.activity.live_processes > 0 {
                rows.entry(key).or_insert(class);
            }
        }
        let usage = rows.into_iter().map(|(key, class)| ((class, key.to_owned()), self.controllers.read(key)));
        usage.filter(|(_, usage)| *usage != Usage::default()).collect()
    }

    /// Which timers and crontabs exist.
    pub(super) fn schedules(&mut self, capabilities: &mut Capabilities) -> Existing {
        let (existing, elapses) = self.shipped.schedules();
        match elapses {
            Ok(()) => capabilities.ok("timers"),
            Err((status, why)) => capabilities.set("timers", status, why),
        }
        if existing.timers.is_some() && existing.crontabs.is_some() {
            capabilities.ok("schedules");
        } else {
            let what = if existing.timers.is_some() { "crontabs" } else { "timers" };
            capabilities.set("schedules", Status::Denied, format!("a folder of {what} cannot be listed"));
        }
        existing
    }
}
