#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    inventory::{AutoScalingGroup, Instance, sample},
    store::{Span, Version},
};
use model::machine::Scheduler;
use serde::Serialize;

const NOW: Timestamp = Timestamp::constant(1_795_000_000, 0);

fn version(kind: ResourceKind, resource: &str, record: &impl Serialize) -> Version {
    let record = serde_json::to_value(record).unwrap();
    Version { kind: kind.as_str().to_owned(), resource: resource.to_owned(), from: NOW, until: None, record }
}

fn span(kind: ResourceKind, hours_ago: i64, failed: Option<&str>) -> Span {
    let (account, region) = ("123456789012", "eu-central-1");
    Span {
        provider: "aws".to_owned(),
        account: account.to_owned(),
        region: region.to_owned(),
        kind: kind.as_str().to_owned(),
        from: NOW - SignedDuration::from_hours(1_000),
        until: NOW - SignedDuration::from_hours(hours_ago),
        failed: failed.map(str::to_owned),
    }
}

/// All lists that membership rests on, read so long ago.
fn spans(hours_ago: i64) -> Vec<Span> {
    let kinds = [
        ResourceKind::Instance,
        ResourceKind::AutoScalingGroup,
        ResourceKind::BatchComputeEnvironment,
        ResourceKind::BatchJob,
        ResourceKind::EcsContainerInstance,
        ResourceKind::EcsTask,
    ];
    kinds.map(|kind| span(kind, hours_ago, None)).into()
}

fn known(inventory: &Inventory) -> (bool, bool) {
    let (provider, account, region) = (Provider::Aws, "123456789012", "eu-central-1");
    let schedulers = inventory.schedulers(provider, account, region);
    (inventory.groups_are_known(provider, account, region), schedulers.of("i-1") == Scheduler::NotListed)
}

#[test]
fn the_history_tells_what_the_sweep_knew() {
    let instance = sample::instance();
    let resources = || vec![version(ResourceKind::Instance, &instance.id.to_string(), &instance)];
    let read = inventory(resources(), &spans(1), NOW);
    assert_eq!((&read.instances, known(&read)), (&vec![instance.clone()], (true, true)));
    assert_eq!(known(&inventory(resources(), &spans(25), NOW)), (false, false), "nobody has read it for a day");
    assert_eq!(known(&inventory(resources(), &[], NOW)), (false, false));
    let mut failed = spans(1);
    failed[1].failed = Some("denied".to_owned());
    assert_eq!(known(&inventory(resources(), &failed, NOW)), (false, true));
    let mut failed = spans(1);
    failed[3].failed = Some("batch:ListJobs: denied".to_owned());
    let read = inventory(resources(), &failed, NOW);
    assert_eq!(known(&read), (true, false));
    let scheduler = read.schedulers(Provider::Aws, "123456789012", "eu-central-1").of("i-1");
    assert!(
        matches!(&scheduler, Scheduler::Unknown { why } if why.contains("batch:ListJobs: denied")),
        "{scheduler:?}"
    );
}

#[test]
fn a_record_that_cannot_be_read_makes_its_list_unknown() {
    // A key that this version cannot read either may be of any place.
    let group = format!("aws:123456789012:eu-central-1:{}/workers", ResourceKind::AutoScalingGroup.as_str());
    for key in [group.as_str(), "aws:123456789012:eu-central-1:later-kind/workers"] {
        let damaged = version(ResourceKind::AutoScalingGroup, key, &"a text");
        assert!(serde_json::from_value::<AutoScalingGroup>(damaged.record.clone()).is_err());
        assert_eq!(known(&inventory(vec![damaged], &spans(1), NOW)), (false, true), "{key}");
    }
    let instance: Instance = sample::instance();
    let damaged = version(ResourceKind::Instance, &instance.id.to_string(), &"a text");
    assert_eq!(inventory(vec![damaged], &spans(1), NOW).instances, []);
}
