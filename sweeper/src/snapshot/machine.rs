//! A machine: its instance joined with its node by their resource key, and what is known of both.

use super::{Coverage, HoursCase, PlacedJobs, QuietCase, SnapshotPart, WeekCase, Worker, coverage};
use crate::{
    identity::Node,
    inventory::{Instance, InstanceState, Inventory, LaunchedBy, Schedulers, Usage, key_of},
    pricing::Cost,
    verdict::{Case, Judgement},
};
use jiff::Timestamp;
use model::machine;
use model::{Provider, ResourceKey};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// A machine with what was found out about it.
#[derive(Debug)]
pub struct Machine {
    /// Which one, and who says so.
    pub subject: Subject,
    /// What detectors decide from.
    pub inputs: MachineInputs,
    /// The verdict on the inputs' case, which is judged once for all classes.
    pub judgement: Judgement,
    /// What it costs.
    pub cost: Cost,
    /// What else its provider says of it.
    pub provider: ProviderFacts,
}

impl Machine {
    /// Whether no agent tells what it does.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.judgement.is_blind()
    }
}

/// Everything that a detection on one machine depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineInputs {
    /// Whether it is there and runs.
    pub presence: Presence,
    /// What its agent reports.
    pub case: Case,
    /// What its provider measured, and what that is held against; none if nobody asked, or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<QuietCase>,
    /// How busy it was in its last full hours, and what that is held against; none if nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<HoursCase>,
    /// When it was quiet in each of its last weeks; none if it has not been there for long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<WeekCase>,
    /// What is known of it as a worker of AWS Batch; none if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Worker>,
    /// What AWS Batch runs on it, by Batch's word.
    #[serde(default, skip_serializing_if = "PlacedJobs::is_none")]
    pub jobs: PlacedJobs,
    /// What could not be read of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SnapshotPart>,
}

impl MachineInputs {
    /// What its presence and its agent tell, without what is learnt from its provider after that.
    #[must_use]
    pub fn new(presence: Presence, case: Case) -> Self {
        let (metrics, hours, week, worker) = (None, None, None, None);
        Self { presence, case, metrics, hours, week, worker, jobs: PlacedJobs::None, failed: Vec::new() }
    }
}

/// What a provider says of a machine beyond its record.
#[derive(Clone, Debug, Default)]
pub struct ProviderFacts {
    /// How busy the provider saw it; none if nobody asked, it could not be read, or nothing was measured.
    pub usage: Option<Usage>,
    /// What protects it, as far as it was asked for and could be read.
    pub protection: machine::Protection,
    /// Who started it; none if nobody asked, or no event that was read says so.
    pub launched_by: Option<LaunchedBy>,
}

/// One machine, seen by a provider, by an agent, by both, or only by an earlier finding.
#[derive(Debug)]
pub struct Subject {
    /// Its key.
    pub id: ResourceKey,
    /// As its provider lists it.
    pub instance: Option<Instance>,
    /// As it joined.
    pub node: Option<Node>,
    /// Whether its provider would list it.
    pub coverage: Coverage,
    /// See [`Inventory::groups_are_known`].
    pub groups_are_known: bool,
    /// See [`Inventory::schedulers`].
    pub schedulers: Arc<Schedulers>,
}

impl Subject {
    /// The instance, if the provider says that it runs.
    #[must_use]
    pub fn running(&self) -> Option<&Instance> {
        self.instance.as_ref().filter(|instance| instance.state.runs() == Some(true))
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let tag = self.instance.as_ref().and_then(|instance| instance.name.clone());
        tag.or_else(|| self.node.as_ref().map(|node| node.hostname.clone())).filter(|name| !name.is_empty())
    }
}

/// What is known of a machine's being there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The state in which the provider lists it; none if it does not list it.
    pub listed: Option<InstanceState>,
    /// Whether the provider would list it.
    pub coverage: Coverage,
    /// Its last start, as far as its provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched_at: Option<Timestamp>,
    /// When its agent was last heard, if it has one.
    pub last_heard: Option<Timestamp>,
    /// A host that no inventory covers is gone when nothing has been heard of it for so long, in seconds.
    pub gone_after_s: u64,
    /// The agent of a machine that runs is silent when nothing has been heard of it for so long, in seconds; `u64::MAX` where a version before wrote it.
    #[serde(default = "never")]
    pub silent_after_s: u64,
}

fn never() -> u64 {
    u64::MAX
}

impl Presence {
    /// Whether a provider was asked about it at all.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.listed.is_some() || self.coverage != Coverage::NotAsked
    }

    /// Whether the provider was asked and did not say whether the machine runs.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        match &self.listed {
            Some(state) => state.runs().is_none(),
            None => self.coverage == Coverage::Failed,
        }
    }
}

/// Joins what providers list with what agents report. Resources that open findings name are subjects too, though neither lists them any more, so that
/// their findings can end.
#[must_use]
pub fn join<'a>(
    inventory: &Inventory,
    nodes: Vec<Node>,
    named: impl IntoIterator<Item = &'a ResourceKey>,
) -> Vec<Subject> {
    let mut subjects: BTreeMap<ResourceKey, Subject> = BTreeMap::new();
    // Asked once of each place: a scope may have thousands of groups.
    let mut known_in: BTreeMap<(String, String), (bool, Arc<Schedulers>)> = BTreeMap::new();
    let not_asked = Arc::new(Schedulers::not_asked());
    let mut at = |id: &ResourceKey, change: &mut dyn FnMut(&mut Subject)| {
        let ResourceKey { provider, account, location, .. } = id;
        // Google Cloud's groups say of themselves which machines are theirs, and it has no such schedulers.
        let (groups_are_known, schedulers) = if *provider == Provider::Aws {
            let known = known_in.entry((account.clone(), location.clone())).or_insert_with(|| {
                let schedulers = Arc::new(inventory.schedulers(*provider, account, location));
                (inventory.groups_are_known(*provider, account, location), schedulers)
            });
            known.clone()
        } else {
            (false, Arc::clone(&not_asked))
        };
        let coverage = coverage(inventory, id);
        let new = || Subject { id: id.clone(), instance: None, node: None, coverage, groups_are_known, schedulers };
        change(subjects.entry(id.clone()).or_insert_with(new));
    };
    for instance in &inventory.instances {
        at(&instance.id, &mut |subject| subject.instance = Some(instance.clone()));
    }
    for node in nodes {
        at(&key_of(&node.node_id), &mut |subject| subject.node = Some(node.clone()));
    }
    for key in named {
        at(key, &mut |_| {});
    }
    subjects.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{
        AutoScalingGroup, Listing, Upkeep,
        sample::{self, listing},
    };
    use model::ResourceKind;

    #[test]
    fn groups_that_failed_or_hide_their_members_may_hold_any_machine() {
        let account = Some("123456789012");
        let groups = |complete| Listing {
            kind: Some(ResourceKind::AutoScalingGroup.into()),
            ..listing(account, Some("eu-central-1"), complete)
        };
        let group = |members| AutoScalingGroup {
            id: ResourceKey {
                provider: Provider::Aws,
                account: "123456789012".into(),
                location: "eu-central-1".into(),
                kind: ResourceKind::AutoScalingGroup,
                id: "workers".into(),
            },
            arn: None,
            min_size: None,
            max_size: None,
            desired_capacity: None,
            launch: None,
            members,
            tags: [].into(),
            upkeep: Upkeep::default(),
        };
        let known = |listings: Vec<Listing>, autoscaling_groups| {
            let inventory = Inventory { listings, autoscaling_groups, ..Inventory::default() };
            let id: ResourceKey = "aws:123456789012:eu-central-1:i-1".parse().expect("a key");
            let instance = Instance { id, ..sample::instance() };
            let inventory = Inventory { instances: vec![instance], ..inventory };
            join(&inventory, Vec::new(), []).remove(0).groups_are_known
        };
        assert!(known(vec![groups(true)], vec![group(Some(Vec::new()))]));
        assert!(known(vec![groups(true)], Vec::new()));
        assert!(!known(vec![groups(false)], Vec::new()), "they were refused");
        assert!(!known(vec![listing(account, Some("eu-central-1"), true)], Vec::new()), "nobody asked");
        assert!(!known(vec![groups(true)], vec![group(None)]), "one does not say its members");
    }
}
