//! What changes between two samples: the rules, what the budget leaves out, pauses, the agent's rights.

use super::{Books, CollectError, Collector};
use crate::{budget::Step, coverage::Probes, host::books, model::Moment, privileges, workload::Names};
use rustix::thread::CapabilitySet;
use std::sync::Arc;
use workload_rules::Rules;

/// Why a probe does not measure that was given up.
const GIVEN_UP: &str = "given up to stay within the agent's own budget (self_budget)";

/// What serves nothing but these steps.
fn probes_of(given_up: &[Step]) -> Vec<&'static str> {
    let probe = |step: &Step| match step {
        Step::SyscallClasses => Some("syscall_classes"),
        Step::Network => Some("network"),
        Step::Interval => None,
    };
    given_up.iter().filter_map(probe).collect()
}

impl Collector {
    /// New rules begin with the next reading. Rows that other rules would have sorted otherwise begin anew, at this moment:
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
        if let Books::Ebpf(object) = &self.books
            && let Err(error) = object.watcher().take_over(Arc::clone(&rules).into())
        {
            tracing::warn!(%error, "engines of pipelines are still known by the rules before");
        }
        self.rules = rules;
        if is_anew {
            self.begin_lost_cpu();
        }
    }

    /// Detaches every program; nothing is counted until [`Collector::resume`].
    pub fn pause(&mut self) {
        self.signals.pause();
        self.books.pause();
    }

    /// Counts again, from zero: what happened in between is nobody's activity.
    ///
    /// # Errors
    /// If the kernel refuses, or it takes a right that was given up: then a new process can.
    pub fn resume(&mut self, given_up: &[Step]) -> Result<(), CollectError> {
        match &mut self.books {
            Books::Ebpf(object) => object.attach(&probes_of(given_up), GIVEN_UP)?,
            Books::Proc(fallback) => fallback.resume().map_err(CollectError::Resume)?,
        }
        let _ = self.read();
        self.begin_anew();
        Ok(())
    }

    /// Does without these from here on, and with all others.
    ///
    /// # Errors
    /// If the kernel refuses to attach again what was given up.
    pub fn do_without(&mut self, given_up: &[Step]) -> Result<(), CollectError> {
        let doubled = if given_up.contains(&Step::Interval) { 2 } else { 1 };
        self.interval = self.configured_interval.saturating_mul(doubled);
        let Books::Ebpf(object) = &mut self.books else { return Ok(()) };
        let before = object.standing().measured;
        object.attach(&probes_of(given_up), GIVEN_UP)?;
        let now = object.standing().measured;
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

    /// Gives up every right that measuring does not need from here on; the probe `privileges` says what came of it.
    pub fn give_up_rights(&mut self) {
        let books = &self.books;
        let (keep, why) = match books {
            _ if self.keep_ptrace => (CapabilitySet::SYS_PTRACE, "as keep_ptrace says"),
            Books::Ebpf(_) => (CapabilitySet::empty(), ""),
            // Nothing else shows other users' storage traffic.
            Books::Proc(_) => (CapabilitySet::SYS_PTRACE, "to read /proc/PID/io"),
        };
        self.rights = Some(privileges::give_up(keep, why, || books.is_usable()));
        // What needed them is looked at once more: who asks for the probes is to hear what holds from here on.
        let mut probes = Probes::default();
        let _ = books::read(self.hidden_host.as_deref(), &mut probes);
        let _ = self.look(Moment::now(), &mut probes);
        self.signals.begin();
        self.state(&mut probes, None);
        self.probes = probes;
    }
}
