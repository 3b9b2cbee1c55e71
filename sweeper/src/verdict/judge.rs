//! From a case to a verdict.
//!
//! A node is `idle` if and only if, for at least `idle_after` (`gpu_idle_after` where its GPUs are read) and up to its latest
//! heartbeat, without a gap (a short one at an agent's restart, which does not count towards that time), every observation measured all signals and all cross-checks, none was above its threshold, nothing
//! that the host did contradicts it, housekeeping stayed within its budget, and nothing waited. It is `active` if any
//! observation within the last `idle_after` was above a threshold. In every other case the first of these decides: it is `unknown` for want of an agent, or
//! for a silent one; for a GPU that nobody reads; for boot grace; for a signal, a cross-check or an event that is missing in the newest observation. It is
//! `waiting` if somebody's work waits, however short the window, and where it would be idle and was called from another machine within `called_after`. And at last it is `unknown` for what ended the quiet window: a gap, an earlier wait,
//! missing evidence or a contradiction.

use super::{BusyRow, Case, Contradiction, DecidingRow, Gpu, Observation, Policy, Signal, Wait, housekeeping::Budget};
use model::Verdict;
use serde::{Deserialize, Serialize};

/// Why a verdict is `unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// No agent ever reported: a blind spot.
    NoAgent,
    /// The agent stopped reporting.
    Silent {
        /// End of the last heartbeat.
        last_heartbeat_unix_ms: i64,
    },
    /// Somebody without the node's key claims to be it: what it reports may be another machine's.
    Disputed {
        /// Since when.
        since_unix_ms: i64,
    },
    /// Just booted.
    BootGrace {
        /// Begin of the boot.
        booted_unix_ms: i64,
    },
    /// A GPU whose samples are missing.
    GpuNotMeasured,
    /// Quiet so far, but not observed for long enough.
    ObservedTooShort {
        /// Since when it has been seen quiet; `None` if nothing could be compared yet.
        quiet_since_unix_ms: Option<i64>,
    },
    /// A signal or a cross-check was not measured.
    NotMeasured {
        /// Which signals.
        signals: Vec<Signal>,
        /// Which cross-checks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        checks: Vec<Contradiction>,
    },
    /// The workloads were quiet, and the machine was not.
    Contradictory {
        /// What it did.
        by: Vec<Contradiction>,
        /// The busiest row of housekeeping, where it was above its budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busiest: Option<BusyRow>,
    },
    /// Kernel events were lost.
    LostEvents {
        /// How many.
        count: u64,
    },
}

/// The one thing that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This signal was above its threshold.
    Above {
        /// Which.
        signal: Signal,
        /// In this observation.
        observation: Observation,
    },
    /// All signals stayed below their thresholds for the whole window.
    AllQuiet {
        /// Observations in the window.
        observations: usize,
        /// Their sums.
        total: Observation,
    },
    /// Nothing was above a threshold, and somebody's work waits for something outside.
    Waiting {
        /// For what.
        on: Vec<Wait>,
    },
    /// There is not enough evidence.
    Unknown(Unknown),
}

/// A verdict with what decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Idle: begin of the quiet window. Active: begin of the observation that decided. In milliseconds since 1970-01-01 UTC.
    pub since_unix_ms: Option<i64>,
    /// What decided.
    pub decision: Decision,
}

impl Judgement {
    pub(super) fn unknown(why: Unknown) -> Self {
        Self { verdict: Verdict::Unknown, since_unix_ms: None, decision: Decision::Unknown(why) }
    }

    /// Whether no agent reports from the machine: none ever did, or it is silent.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        matches!(self.decision, Decision::Unknown(Unknown::NoAgent | Unknown::Silent { .. }))
    }

    /// Why it is unknown, if it is.
    #[must_use]
    pub fn why_unknown(&self) -> Option<&Unknown> {
        match &self.decision {
            Decision::Unknown(why) => Some(why),
            Decision::Above { .. } | Decision::AllQuiet { .. } | Decision::Waiting { .. } => None,
        }
    }

    /// The row that did most of what decided, where a row did.
    #[must_use]
    pub fn deciding_row(&self) -> Option<&DecidingRow> {
        let Decision::Above { signal, observation } = &self.decision else { return None };
        observation.deciding_row.as_ref().filter(|row| row.signal == *signal)
    }
}

/// Judges a case.
#[must_use]
pub fn judge(case: &Case) -> Judgement {
    let unknown = Judgement::unknown;
    let Some(node) = &case.node else { return unknown(Unknown::NoAgent) };
    if let Some(since_unix_ms) = node.identity.and_then(|identity| identity.disputed_since_unix_ms) {
        return unknown(Unknown::Disputed { since_unix_ms });
    }
    let policy = &case.policy;
    let idle_after_ms = case.idle_after_ms();
    let silent_after_ms = node.interval_ms.saturating_mul(i64::from(policy.missed_heartbeats).max(1));
    if case.now_unix_ms.saturating_sub(node.last_heartbeat_unix_ms) > silent_after_ms {
        return unknown(Unknown::Silent { last_heartbeat_unix_ms: node.last_heartbeat_unix_ms });
    }

    // Newest first. The quiet window grows backwards until something was loud, missing or not measured.
    let mut quiet = Vec::new();
    let mut window_start = None;
    let mut interrupted = None;
    let mut restarts = Restarts::default();
    let mut budget = Budget::new(policy.housekeeping_cpu_budget_ns_per_s, idle_after_ms);
    for observation in case.observations.iter().rev() {
        let in_reach = node.last_heartbeat_unix_ms.saturating_sub(observation.end_unix_ms) < idle_after_ms;
        if let Some(active) = active(observation, policy, node.interval_ms) {
            if in_reach {
                return active;
            }
            break;
        }
        if interrupted.is_some() {
            // Only activity within reach could still change the verdict.
            if in_reach { continue } else { break }
        }
        let contradictions = observation.contradictions(policy, node.interval_ms);
        if !touches(observation.end_unix_ms, window_start.unwrap_or(node.last_heartbeat_unix_ms)) {
            interrupted = Some(Unknown::ObservedTooShort { quiet_since_unix_ms: window_start });
        } else if let Some(missing) = missing(observation) {
            interrupted = Some(missing);
        } else if !contradictions.is_empty() {
            interrupted = Some(Unknown::Contradictory { by: contradictions, busiest: None });
        } else if observation.has_waited(policy, idle_after_ms)
            || !restarts.are_bearable_with(observation, idle_after_ms)
        {
            interrupted = Some(Unknown::ObservedTooShort { quiet_since_unix_ms: window_start });
        } else if budget.is_exceeded_with(observation) {
            let by = vec![Contradiction::Housekeeping];
            interrupted = Some(Unknown::Contradictory { by, busiest: budget.busiest() });
        } else {
            window_start = Some(observation.start_unix_ms);
            quiet.push(observation);
        }
    }

    // Activity was looked for first: a machine that works is active even while it boots or hides its GPU.
    if node.gpu == Gpu::NotMeasured {
        return unknown(Unknown::GpuNotMeasured);
    }
    if case.now_unix_ms.saturating_sub(node.booted_unix_ms) < policy.boot_grace_ms {
        return unknown(Unknown::BootGrace { booted_unix_ms: node.booted_unix_ms });
    }
    let newest = case.observations.last().filter(|newest| touches(newest.end_unix_ms, node.last_heartbeat_unix_ms));
    if let Some(missing) = newest.and_then(missing) {
        return unknown(missing);
    }
    let waiting = |on| Judgement { verdict: Verdict::Waiting, since_unix_ms: None, decision: Decision::Waiting { on } };
    let on = case.waits();
    if !on.is_empty() {
        return waiting(on);
    }
    let is_long_enough = |start: &i64| node.last_heartbeat_unix_ms - start - restarts.gaps_ms >= idle_after_ms;
    if let Some(call) = window_start.filter(is_long_enough).and_then(|_| case.call_before()) {
        return waiting(vec![call]);
    }
    match window_start {
        Some(start) if is_long_enough(&start) => Judgement {
            verdict: Verdict::Idle,
            since_unix_ms: Some(start),
            decision: Decision::AllQuiet {
                observations: quiet.len(),
                total: total(&quiet, start, node.last_heartbeat_unix_ms),
            },
        },
        quiet_since_unix_ms => unknown(interrupted.unwrap_or(Unknown::ObservedTooShort { quiet_since_unix_ms })),
    }
}

/// The last work that a case shows, as a judgement of the moment would have said it; `None` if it shows none.
#[must_use]
pub fn last_work(case: &Case) -> Option<Judgement> {
    let node = case.node.as_ref()?;
    case.observations.iter().rev().find_map(|observation| active(observation, &case.policy, node.interval_ms))
}

/// Whether a case shows work that ending a machine's services does not look like: activity that a later heartbeat followed, or a person's, a new peer's or a GPU's in
/// the last one. An agent is told to end when all services are, and takes its last sample then; what it saw before was no shutdown.
#[must_use]
pub fn is_no_shutdown(case: &Case) -> bool {
    let Some(node) = case.node.as_ref() else { return false };
    let active = |seen: &Observation| seen.active(&case.policy, node.interval_ms);
    let Some((last, before)) = case.observations.split_last() else { return false };
    let never_ends = |signal: &Signal| matches!(signal, Signal::Person | Signal::InboundPeers | Signal::Gpu);
    before.iter().any(|seen| !active(seen).is_empty()) || active(last).iter().any(never_ends)
}

/// The judgement that an observation of work gives.
fn active(observation: &Observation, policy: &Policy, interval_ms: i64) -> Option<Judgement> {
    let signal = *observation.active(policy, interval_ms).first()?;
    Some(Judgement {
        verdict: Verdict::Active,
        since_unix_ms: Some(observation.start_unix_ms),
        decision: Decision::Above { signal, observation: observation.clone() },
    })
}

/// The restarts of the agent within a window that grows backwards.
#[derive(Debug, Default)]
struct Restarts {
    /// The times without an agent together.
    gaps_ms: i64,
    /// The oldest so far, in milliseconds since 1970-01-01 UTC.
    oldest_unix_ms: Option<i64>,
}

impl Restarts {
    /// Adds an observation. Of two restarts within a third of `idle_after` the earlier one ends the window: an agent that is restarted
    /// again and again sees too little.
    fn are_bearable_with(&mut self, observation: &Observation, idle_after_ms: i64) -> bool {
        let Some(gap_ms) = observation.restart_gap_ms else { return true };
        let later = self.oldest_unix_ms.replace(observation.start_unix_ms);
        if later.is_some_and(|later| later.saturating_sub(observation.start_unix_ms) < idle_after_ms / 3) {
            return false;
        }
        self.gaps_ms = self.gaps_ms.saturating_add(gap_ms);
        true
    }
}

/// Wall-clock times are rounded to milliseconds and a slewed clock moves them against the boot clock by at most 500 ppm:
/// 15 ms in 30 s. More than this between two observations is a gap.
const TOUCH_MS: i64 = 500;

pub(super) fn touches(end_unix_ms: i64, begin_of_what_follows_unix_ms: i64) -> bool {
    (end_unix_ms - begin_of_what_follows_unix_ms).abs() <= TOUCH_MS
}

/// What an observation lacks to be evidence of quietness.
pub(super) fn missing(observation: &Observation) -> Option<Unknown> {
    let (signals, checks) = (observation.not_measured(), observation.unchecked.clone());
    if !signals.is_empty() || !checks.is_empty() {
        return Some(Unknown::NotMeasured { signals, checks });
    }
    (observation.lost_events > 0).then_some(Unknown::LostEvents { count: observation.lost_events })
}

fn total(quiet: &[&Observation], start_unix_ms: i64, end_unix_ms: i64) -> Observation {
    let sum = |value: fn(&Observation) -> Option<u64>| {
        quiet.iter().try_fold(0_u64, |total, observation| Some(total.saturating_add(value(observation)?)))
    };
    Observation {
        start_unix_ms,
        end_unix_ms,
        workload_cpu_ns: sum(|o| o.workload_cpu_ns),
        workload_starts: sum(|o| o.workload_starts),
        unattributed_starts: sum(|o| o.unattributed_starts),
        workload_disk_bytes: sum(|o| o.workload_disk_bytes),
        network_bytes: sum(|o| o.network_bytes),
        oom_kills: sum(|o| o.oom_kills),
        gpu_busy_ns: sum(|o| o.gpu_busy_ns),
        last_input_unix_ms: None,
        new_inbound_peers: sum(|o| o.new_inbound_peers),
        blind: Vec::new(),
        lost_events: quiet.iter().map(|o| o.lost_events).sum(),
        unattributed_cpu_ns: sum(|o| o.unattributed_cpu_ns),
        kernel_cpu_ns: sum(|o| o.kernel_cpu_ns),
        unattributed_disk_bytes: sum(|o| o.unattributed_disk_bytes),
        unattributed_network_bytes: sum(|o| o.unattributed_network_bytes),
        housekeeping_cpu_ns: sum(|o| o.housekeeping_cpu_ns),
        busiest_housekeeping: None,
        unchecked: Vec::new(),
        deciding_row: None,
        restart_gap_ms: quiet.iter().filter_map(|o| o.restart_gap_ms).reduce(i64::saturating_add),
        waited: false,
        slept_ms: quiet.iter().filter_map(|o| o.slept_ms).max(),
    }
}
