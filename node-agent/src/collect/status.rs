//! What is measured and what is not, as of one sample.

use super::{Sampler, TaskCounters};
use crate::{
    coverage::{Capabilities, Status},
    model::{Measured, Statuses},
};

impl Sampler {
    /// Says for each capability of the tasks' counters how it stands, and which columns hold a measurement.
    pub(super) fn state(&self, capabilities: &mut Capabilities, failure: Option<&str>) -> Measured {
        let statuses = self.statuses();
        statuses.state(capabilities);
        self.rules_store.report(capabilities);
        self.shipped.state(capabilities);
        self.containers.state(capabilities);
        self.lost_cpu.state(capabilities);
        if statuses.measured.cgroups && !self.cgroups.any() {
            capabilities.set("cgroups", Status::NotApplicable, "no cgroup tree is mounted");
        }
        match &self.task_counters {
            TaskCounters::Ebpf(object) => match object.runs_are_off() {
                None => capabilities.ok("pipelines"),
                Some(reason) => capabilities.set("pipelines", Status::Denied, reason),
            },
            TaskCounters::Proc(_) => {
                let reason = "which process began which is told by eBPF alone";
                capabilities.set("pipelines", Status::Unsupported, reason);
            }
        }
        match &self.rights {
            Some(rights) => rights.state(capabilities),
            None => {
                capabilities.set("privileges", Status::NotApplicable, "they are dropped once everything is attached");
            }
        }
        match failure {
            None => statuses.measured,
            Some(failure) => {
                statuses.state_failure(capabilities, failure);
                Measured::default()
            }
        }
    }

    pub(super) fn statuses(&self) -> Statuses {
        let mut statuses = match &self.task_counters {
            TaskCounters::Ebpf(object) => object.statuses().clone(),
            TaskCounters::Proc(fallback) => {
                let unknown = (Status::Unsupported, String::new());
                fallback.statuses(self.ebpf_refusal.as_ref().unwrap_or(&unknown))
            }
        };
        if let Some(reason) = &self.hidden_host {
            statuses.see_nothing(reason);
        }
        statuses
    }
}
