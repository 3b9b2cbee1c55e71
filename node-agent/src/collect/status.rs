//! What is measured and what is not, as of one sample.

use super::{Books, Collector};
use crate::{
    coverage::{Probes, Status},
    model::{Measured, Standing},
};

impl Collector {
    /// Says for each probe of the tasks' books how it stands, and which columns hold a measurement.
    pub(super) fn state(&self, probes: &mut Probes, failure: Option<&str>) -> Measured {
        let standing = self.standing();
        standing.state(probes);
        self.keeper.report(probes);
        self.shipped.state(probes);
        self.containers.state(probes);
        self.lost_cpu.state(probes);
        if standing.measured.cgroups && !self.cgroups.any() {
            probes.set("cgroups", Status::NotApplicable, "no cgroup tree is mounted");
        }
        match &self.books {
            Books::Ebpf(_) => probes.ok("pipelines"),
            Books::Proc(_) => {
                let reason = "which process began which is told by eBPF alone";
                probes.set("pipelines", Status::Unsupported, reason);
            }
        }
        match &self.rights {
            Some(rights) => rights.state(probes),
            None => probes.set("privileges", Status::NotApplicable, "they are given up once everything is attached"),
        }
        match failure {
            None => standing.measured,
            Some(failure) => {
                standing.state_failure(probes, failure);
                Measured::default()
            }
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let mut standing = match &self.books {
            Books::Ebpf(object) => object.standing().clone(),
            Books::Proc(fallback) => {
                let unknown = (Status::Unsupported, String::new());
                fallback.standing(self.ebpf_refusal.as_ref().unwrap_or(&unknown))
            }
        };
        if let Some(reason) = &self.hidden_host {
            standing.see_nothing(reason);
        }
        standing
    }
}
