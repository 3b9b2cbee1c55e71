//! What changes between two samples: the rules, what the budget leaves out, pauses, the agent's rights.

use super::{CollectError, Sampler, TaskCounters};
use crate::{budget::Step, coverage::Capabilities, host::counters, model::Moment, privileges, workload::Names};
use rustix::thread::CapabilitySet;
use std::sync::Arc;
use workload_rules::Rules;

/// Why a capability that was shed does not measure.
const SHED: &str = "shed to stay within the agent's own budget (self_budget)";

/// What serves nothing but these steps.
fn capabilities_of(shed: &[Step]) -> Vec<&'static str> {
    let capability = |step: &Step| match step {
        Step::Pipelines => Some("pipelines"),
        Step::SyscallClasses => Some("syscall_classes"),
        Step::Network => Some("network"),
        Step::Interval => None,
    };
    shed.iter().filter_map(capability).collect()
}

impl Sampler {
    /// New rules begin with the next sample. Rows that other rules would have sorted otherwise begin anew, at this moment:
    /// none of their counters ever runs backwards, and the sweeper subtracts nothing across the change.
    pub(super) fn take_over(&mut self, rules: Arc<Rules>, now: Moment, drops: Vec<(&'static str, u64)>) {
        if rules == self.rules {
            return;
        }
        let is_anew = rules.housekeeping != self.rules.housekeeping;
        if is_anew {
            self.rows.begin_anew();
            self.runs.begin_anew();
            self.counters_since = now;
            self.drops_before = drops;
        }
        self.names = Names::default();
        if let TaskCounters::Ebpf(object) = &self.task_counters
            && let Err(error) = object.watcher().take_over(Arc::clone(&rules).into())
        {
            tracing::warn!(%error, "engines of pipelines are still known by the rules before");
        }
        self.rules_digest = crate::rules::digest(&rules);
        self.rules = rules;
        if is_anew {
            self.begin_lost_cpu();
        }
    }

    /// Detaches every program; nothing is counted until [`Sampler::resume`].
    pub fn pause(&mut self) {
        self.signals.pause();
        self.task_counters.pause();
    }

    /// Counts again, from zero: what happened in between is nobody's activity.
    ///
    /// # Errors
    /// If the kernel refuses, or it takes a right that was dropped: then a new process can.
    pub fn resume(&mut self, shed: &[Step]) -> Result<(), CollectError> {
        match &mut self.task_counters {
            TaskCounters::Ebpf(object) => object.attach(&capabilities_of(shed), SHED)?,
            TaskCounters::Proc(fallback) => fallback.resume().map_err(CollectError::Resume)?,
        }
        let _ = self.read();
        self.begin_anew();
        Ok(())
    }

    /// Does without these from here on, and with all others.
    ///
    /// # Errors
    /// If the kernel refuses to attach again what was shed.
    pub fn do_without(&mut self, shed: &[Step]) -> Result<(), CollectError> {
        let doubled = if shed.contains(&Step::Interval) { 2 } else { 1 };
        self.interval = self.configured_interval.saturating_mul(doubled);
        let TaskCounters::Ebpf(object) = &mut self.task_counters else { return Ok(()) };
        let before = object.statuses().measured;
        object.attach(&capabilities_of(shed), SHED)?;
        let now = object.statuses().measured;
        // A sum with a gap in it is no sum since the old begin.
        if (now.network && !before.network) || (now.syscalls && !before.syscalls) {
            self.begin_anew();
        }
        Ok(())
    }

    /// Every counter of the rows is zero from here on.
    fn begin_anew(&mut self) {
        self.rows.begin_anew();
        self.runs.begin_anew();
        self.counters_since = Moment::now();
        self.drops_before = self.lost();
        self.begin_lost_cpu();
    }

    /// Drops every right that measuring does not need from here on; the capability `privileges` says what came of it.
    pub fn drop_rights(&mut self) {
        let task_counters = &self.task_counters;
        let (keep, why) = match task_counters {
            _ if self.keep_ptrace => (CapabilitySet::SYS_PTRACE, "as keep_ptrace says"),
            TaskCounters::Ebpf(_) => (CapabilitySet::empty(), ""),
            // Nothing else shows other users' storage traffic.
            TaskCounters::Proc(_) => (CapabilitySet::SYS_PTRACE, "to read /proc/PID/io"),
        };
        self.rights = Some(privileges::drop_rights(keep, why, || task_counters.is_usable()));
        // What needed them is looked at once more: who asks for the capabilities is to hear what holds from here on.
        let mut capabilities = Capabilities::default();
        let traffic = counters::traffic(self.hidden_host.as_deref(), &mut capabilities);
        let _ = counters::read(traffic, &mut capabilities);
        let _ = self.read_signals(Moment::now(), &mut capabilities);
        self.signals.begin();
        self.state(&mut capabilities, None);
        self.capabilities = capabilities;
    }
}
