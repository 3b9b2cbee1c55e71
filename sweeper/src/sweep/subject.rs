//! What a sweep judges: instances joined with nodes by their resource key, and what open findings are about.

use crate::{
    detectors::Coverage,
    findings::Finding,
    inventory::{Instance, Inventory, Outcome, Schedulers, key_of},
    store::Node,
};
use model::{Provider, ResourceKey, ResourceKind};
use std::{collections::BTreeMap, sync::Arc};

/// One machine, seen by a provider, by an agent, by both, or only by an earlier finding.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) id: ResourceKey,
    pub(super) instance: Option<Instance>,
    pub(super) node: Option<Node>,
    pub(super) coverage: Coverage,
    /// See [`Inventory::groups_are_known`].
    pub(super) groups_are_known: bool,
    /// See [`Inventory::schedulers`].
    pub(super) schedulers: Arc<Schedulers>,
}

impl Subject {
    /// The instance, if the provider says that it runs.
    pub(super) fn running(&self) -> Option<&Instance> {
        self.instance.as_ref().filter(|instance| instance.state.runs() == Some(true))
    }

    /// What people call it.
    pub(super) fn name(&self) -> Option<String> {
        let tag = self.instance.as_ref().and_then(|instance| instance.name.clone());
        tag.or_else(|| self.node.as_ref().map(|node| node.hostname.clone())).filter(|name| !name.is_empty())
    }
}

/// Joins what providers list with what agents report. Resources of open findings that neither lists any more are subjects too, so that their
/// findings can end.
pub(super) fn join(inventory: &Inventory, nodes: Vec<Node>, open: &[Finding]) -> Vec<Subject> {
    let mut subjects: BTreeMap<ResourceKey, Subject> = BTreeMap::new();
    let mut schedulers_in: BTreeMap<(String, String), Arc<Schedulers>> = BTreeMap::new();
    let not_asked = Arc::new(Schedulers::not_asked());
    let mut at = |id: &ResourceKey, change: &mut dyn FnMut(&mut Subject)| {
        let ResourceKey { provider, account, location, .. } = id;
        // Google Cloud's groups say of themselves which machines are theirs, and it has no such schedulers.
        let (groups_are_known, schedulers) = if *provider == Provider::Aws {
            let known = schedulers_in.entry((account.clone(), location.clone()));
            let schedulers = known.or_insert_with(|| Arc::new(inventory.schedulers(*provider, account, location)));
            (inventory.groups_are_known(*provider, account, location), Arc::clone(schedulers))
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
    for finding in open {
        at(&finding.resource, &mut |_| {});
    }
    subjects.into_values().collect()
}

fn coverage(inventory: &Inventory, id: &ResourceKey) -> Coverage {
    let ResourceKey { provider, account, location, .. } = id;
    let mut covered = Coverage::NotAsked;
    for listing in &inventory.listings {
        if listing.may_speak_of(*provider, account, location, ResourceKind::Instance) {
            match &listing.outcome {
                Outcome::Failed { .. } if listing.is_of_a_part() => return Coverage::Failed,
                Outcome::Complete { .. } => covered = Coverage::Complete,
                Outcome::Failed { .. } if covered != Coverage::Complete => covered = Coverage::Failed,
                Outcome::Failed { .. } => {}
            }
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{AutoScalingGroup, Failure, FailureKind, Listing, sample};

    fn listing(account: Option<&str>, region: Option<&str>, complete: bool) -> Listing {
        Listing {
            provider: Provider::Aws,
            account: account.map(str::to_owned),
            region: region.map(str::to_owned),
            kind: region.map(|_| ResourceKind::Instance.into()),
            outcome: if complete {
                Outcome::Complete { listed: 0 }
            } else {
                Outcome::Failed {
                    what: "ec2:DescribeInstances".into(),
                    why: Failure { kind: FailureKind::Throttled, message: String::new() },
                }
            },
        }
    }

    #[test]
    fn a_failed_region_is_unknown_and_never_empty() {
        let id: ResourceKey = "aws:123456789012:eu-central-1:i-1".parse().expect("a key");
        let host: ResourceKey = "host:0123456789abcdef0123456789abcdef".parse().expect("a key");
        let of = |listings: Vec<Listing>, id| coverage(&Inventory { listings, ..Inventory::default() }, id);
        let account = Some("123456789012");
        assert_eq!(of(vec![], &id), Coverage::NotAsked);
        assert_eq!(of(vec![listing(account, Some("eu-central-1"), true)], &id), Coverage::Complete);
        assert_eq!(of(vec![listing(account, Some("eu-central-1"), false)], &id), Coverage::Failed);
        assert_eq!(of(vec![listing(account, Some("us-east-1"), true)], &id), Coverage::NotAsked);
        assert_eq!(of(vec![listing(Some("999999999999"), Some("eu-central-1"), true)], &id), Coverage::NotAsked);
        assert_eq!(of(vec![listing(None, None, false)], &id), Coverage::Failed, "it may have been that account");
        assert_eq!(of(vec![listing(None, None, false)], &host), Coverage::NotAsked);
        let volumes =
            Listing { kind: Some(ResourceKind::Volume.into()), ..listing(account, Some("eu-central-1"), false) };
        let instances = listing(account, Some("eu-central-1"), true);
        assert_eq!(of(vec![volumes, instances], &id), Coverage::Complete, "what else was not listed is another matter");
    }

    #[test]
    fn a_zone_that_failed_is_unknown_although_the_rest_of_its_project_is_known() {
        let of = |listings: &[(&str, bool)], id: &str| {
            let google = |(region, complete): &(&str, bool)| Listing {
                provider: Provider::Gcp,
                ..listing(Some("omics"), Some(region), *complete)
            };
            let listings = listings.iter().map(google).collect();
            coverage(&Inventory { listings, ..Inventory::default() }, &id.parse().expect("a key"))
        };
        let (here, there) = ("gcp:omics:europe-west3-a:1", "gcp:omics:europe-west3-b:1");
        let parts = [("all", true), ("europe-west3-b", false)];
        assert_eq!(of(&parts, here), Coverage::Complete);
        assert_eq!(of(&parts, there), Coverage::Failed);
        assert_eq!(of(&[parts[1], parts[0]], there), Coverage::Failed, "in any order");
        assert_eq!(of(&[("all", false)], here), Coverage::Failed);
        assert_eq!(of(&parts, "gcp:other:europe-west3-a:1"), Coverage::NotAsked);
    }

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
        };
        let known = |listings: Vec<Listing>, autoscaling_groups| {
            let inventory = Inventory { listings, autoscaling_groups, ..Inventory::default() };
            let id: ResourceKey = "aws:123456789012:eu-central-1:i-1".parse().expect("a key");
            let instance = Instance { id, ..sample::instance() };
            let inventory = Inventory { instances: vec![instance], ..inventory };
            join(&inventory, Vec::new(), &[]).remove(0).groups_are_known
        };
        assert!(known(vec![groups(true)], vec![group(Some(Vec::new()))]));
        assert!(known(vec![groups(true)], Vec::new()));
        assert!(!known(vec![groups(false)], Vec::new()), "they were refused");
        assert!(!known(vec![listing(account, Some("eu-central-1"), true)], Vec::new()), "nobody asked");
        assert!(!known(vec![groups(true)], vec![group(None)]), "one does not say its members");
    }
}
