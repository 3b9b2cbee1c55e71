//! What a node's heartbeats come to so far, brought up to date with each of them.
//!
//! A sweep reads one of these for a node, in place of the heartbeats of hours. It tells that a node is active, for what it waits, or why it is unknown. It never tells
//! that one is idle: of a node that may be, its heartbeats are asked ([`NodeState::judge`] then says nothing), so that whatever a finding rests on was
//! judged from a whole window. Where both speak they say the same, but for what only the rows of two heartbeats tell: who did it.
//!
//! It depends on the heartbeats of the last two horizons alone, so that it can be made anew from them: a heartbeat that arrives late, or
//! after a later one, gives the same state as one that came in time. The horizon is the longest time after which a node is idle.

use super::{
    Case, Counters, Decision, Gpu, Judgement, NodeFacts, Observation, Policy, Unknown, judge,
    judge::{missing, touches},
};
use crate::identity::Identity;
use heartbeat::{BootId, wire};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What states are made by: the policy, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePolicy {
    policy: Policy,
    horizon_ms: i64,
    /// States that were made under another policy, or by another version of this module, are made anew.
    digest: String,
}

/// Ends and begins are rounded, and a clock is slewed: twice what still counts as no gap.
const SLACK_MS: i64 = 1_000;
/// Raised whenever the same heartbeats come to another state than before.
const VERSION: u32 = 4;

impl StatePolicy {
    /// By this policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        // A policy is numbers and a switch, which always have a form in JSON.
        let told = serde_json::to_string(&policy).unwrap_or_default();
        let digest = hex::encode(&Sha256::digest(format!("{VERSION} {told}"))[..8]);
        Self { horizon_ms: policy.idle_after_ms.max(policy.gpu_idle_after_ms), policy, digest }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// So far back a state may depend on heartbeats: their intervals end later than so long before the newest, in milliseconds.
    #[must_use]
    pub fn reach_ms(&self) -> i64 {
        self.horizon_ms.saturating_mul(2).saturating_add(SLACK_MS)
    }
}

/// What one heartbeat tells, as far as a state depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSample {
    node: NodeFacts,
    counters: Counters,
}

impl NodeSample {
    /// What a heartbeat tells; `None` if it lacks a part that a checked envelope always has.
    #[must_use]
    pub fn of(boot_id: BootId, heartbeat: &wire::Heartbeat) -> Option<Self> {
        let node = NodeFacts { workloads: Vec::new(), more_workloads: 0, ..NodeFacts::of(boot_id, heartbeat)? };
        Some(Self { node, counters: Counters::of(boot_id, heartbeat)?.without_names() })
    }

    /// Where it stands among those of its node: by the end of its interval, by the wall clock and by the boot clock.
    #[must_use]
    pub fn order(&self) -> (i64, u64) {
        (self.node.last_heartbeat_unix_ms, self.counters.end_boottime_ns())
    }
}

/// What a node's heartbeats come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    digest: String,
    /// The newest heartbeat's.
    node: NodeFacts,
    counters: Counters,
    /// Network bytes that were on their way at its end ([`Counters::ahead_bytes`]).
    #[serde(default)]
    ahead_bytes: u64,
    /// Where the heartbeats begin that it was made from, if that is within the horizon.
    begins_unix_ms: Option<i64>,
    /// The last work, if it ended within the horizon.
    last_work: Option<Observation>,
    /// Since when it has been quiet, one horizon ago at most.
    quiet_since_unix_ms: Option<i64>,
    /// What ended the quiet before that, where it says why the verdict is unknown.
    ended_by: Option<Unknown>,
}

/// What came of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in the state.
    Newest,
    /// It lies before the newest, and within what the state depends on: the state is to be made anew.
    Late,
    /// It lies so far back that the state does not depend on it.
    Irrelevant,
}

impl NodeState {
    /// From the first heartbeat.
    #[must_use]
    pub fn begin(sample: NodeSample, state_policy: &StatePolicy) -> Self {
        Self {
            digest: state_policy.digest.clone(),
            begins_unix_ms: Some(sample.node.last_heartbeat_unix_ms),
            node: sample.node,
            counters: sample.counters,
            ahead_bytes: 0,
            last_work: None,
            quiet_since_unix_ms: None,
            ended_by: None,
        }
    }

    /// From heartbeats in the order of their ends; `None` of none.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = NodeSample>, state_policy: &StatePolicy) -> Option<Self> {
        let mut samples = samples.into_iter();
        let mut state = Self::begin(samples.next()?, state_policy);
        samples.for_each(|sample| {
            state.add(sample, state_policy);
        });
        Some(state)
    }

    /// Whether it was made so.
    #[must_use]
    pub fn is_of(&self, state_policy: &StatePolicy) -> bool {
        self.digest == state_policy.digest
    }

    /// The node, as its newest heartbeat describes it, without its workloads.
    #[must_use]
    pub fn facts(&self) -> &NodeFacts {
        &self.node
    }

    /// The end of the newest heartbeat, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn newest_unix_ms(&self) -> i64 {
        self.node.last_heartbeat_unix_ms
    }

    /// Since when it has been quiet, as far as it looks back, in milliseconds since 1970-01-01 UTC; `None` if it is not.
    #[must_use]
    pub fn quiet_since_unix_ms(&self) -> Option<i64> {
        self.quiet_since_unix_ms
    }

    /// When it last worked, as far as it looks back, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn last_work_unix_ms(&self) -> Option<i64> {
        self.last_work.as_ref().map(|work| work.end_unix_ms)
    }

    /// Whether the node has GPUs, and its agent reads them.
    #[must_use]
    pub fn has_read_gpus(&self) -> bool {
        self.node.gpu == Gpu::Measured
    }

    /// Takes a heartbeat up.
    pub fn add(&mut self, sample: NodeSample, state_policy: &StatePolicy) -> Added {
        let newest = sample.node.last_heartbeat_unix_ms;
        if sample.order() <= (self.newest_unix_ms(), self.counters.end_boottime_ns()) {
            let is_in_reach = newest > self.newest_unix_ms().saturating_sub(state_policy.reach_ms());
            return if is_in_reach { Added::Late } else { Added::Irrelevant };
        }
        let before = self.newest_unix_ms();
        if newest.saturating_sub(before) > state_policy.horizon_ms {
            // Whatever happened in so long a time, it is not known when.
            *self = Self::begin(sample, state_policy);
            return Added::Newest;
        }
        let interval_ms = sample.node.interval_ms;
        let observation = sample.counters.since(&self.counters, self.ahead_bytes, sample.node.restart_gap_ms());
        self.ahead_bytes = sample.counters.ahead_bytes(&self.counters);
        (self.node, self.counters) = (sample.node, sample.counters);
        match observation
            .filter(|observation| newest.saturating_sub(observation.start_unix_ms) <= state_policy.horizon_ms)
        {
            Some(observation) => {
                if !touches(before, observation.start_unix_ms) {
                    (self.quiet_since_unix_ms, self.ended_by) = (None, None);
                }
                self.observe(observation, &state_policy.policy, interval_ms);
            }
            // Nobody saw what happened in between.
            None => (self.quiet_since_unix_ms, self.ended_by) = (None, None),
        }
        self.forget(newest.saturating_sub(state_policy.horizon_ms));
        Added::Newest
    }

    fn observe(&mut self, observation: Observation, policy: &Policy, interval_ms: i64) {
        let ended_by = if !observation.active(policy, interval_ms).is_empty() {
            self.last_work = Some(observation);
            None
        } else if let Some(missing) = missing(&observation) {
            Some(missing)
        } else {
            let by = observation.contradictions(policy, interval_ms);
            if by.is_empty() && !observation.has_waited(policy, policy.idle_after_ms(self.has_read_gpus())) {
                // Restarts and the budget of housekeeping are left to the whole window: they only make it shorter.
                self.quiet_since_unix_ms.get_or_insert(observation.start_unix_ms);
                return;
            }
            (!by.is_empty()).then_some(Unknown::Contradictory { by, busiest: None })
        };
        (self.quiet_since_unix_ms, self.ended_by) = (None, ended_by);
    }

    /// Forgets what lies before the horizon, so that the state is the same as if it had been made from there.
    fn forget(&mut self, horizon_unix_ms: i64) {
        self.begins_unix_ms = self.begins_unix_ms.filter(|begin| *begin > horizon_unix_ms);
        self.last_work.take_if(|work| work.end_unix_ms <= horizon_unix_ms);
        if let Some(since) = &mut self.quiet_since_unix_ms
            && *since <= horizon_unix_ms
        {
            *since = horizon_unix_ms;
            self.ended_by = None;
        }
    }

    /// The judgement of this moment, with a case that holds what the node last said and, of all observations, its last work: what the case alone is
    /// judged as refutes the same findings. `None` if the node's heartbeats must be asked.
    #[must_use]
    pub fn judge(
        &self,
        now_unix_ms: i64,
        state_policy: &StatePolicy,
        identity: Option<Identity>,
    ) -> Option<(Case, Judgement)> {
        if !self.is_of(state_policy) {
            return None;
        }
        let node = NodeFacts { identity, ..self.node.clone() };
        let observations = self.last_work.iter().cloned().collect();
        let case = Case { now_unix_ms, policy: state_policy.policy.clone(), node: Some(node), observations };
        let reach_unix_ms = self.newest_unix_ms().saturating_sub(case.idle_after_ms());
        let of_the_moment = judge(&case);
        let is_said_first = matches!(
            of_the_moment.decision,
            Decision::Above { .. } | Decision::Unknown(Unknown::Disputed { .. } | Unknown::Silent { .. })
        );
        if is_said_first {
            return Some((case, of_the_moment));
        }
        // There may have been work before its beginning.
        if self.begins_unix_ms.is_some_and(|begin| begin > reach_unix_ms) {
            return None;
        }
        if matches!(of_the_moment.why_unknown(), Some(Unknown::GpuNotMeasured | Unknown::BootGrace { .. })) {
            return Some((case, of_the_moment));
        }
        let is_newest = self.quiet_since_unix_ms.is_none();
        let lacks = |why: &&Unknown| matches!(why, Unknown::NotMeasured { .. } | Unknown::LostEvents { .. });
        if let Some(why) = self.ended_by.as_ref().filter(lacks).filter(|_| is_newest) {
            return Some((case, Judgement::unknown(why.clone())));
        }
        if matches!(of_the_moment.decision, Decision::Waiting { .. }) {
            return Some((case, of_the_moment));
        }
        let quiet_since_unix_ms = self.quiet_since_unix_ms;
        if quiet_since_unix_ms.is_some_and(|since| since <= reach_unix_ms) {
            return None;
        }
        let too_short = Unknown::ObservedTooShort { quiet_since_unix_ms };
        Some((case, Judgement::unknown(self.ended_by.clone().unwrap_or(too_short))))
    }
}
