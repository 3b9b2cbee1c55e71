use super::*;
use crate::inventory::{EcsContainerInstance, Failure, FailureKind, Scope};
use model::{Provider, ResourceKind};

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() }
}

fn machine(id: &str, instance: Option<&str>) -> EcsContainerInstance {
    EcsContainerInstance {
        id: scope().key(ResourceKind::EcsContainerInstance, format!("web/{id}")),
        arn: format!("arn:aws:ecs:eu-central-1:123456789012:container-instance/web/{id}"),
        cluster: "web".into(),
        instance_id: instance.map(str::to_owned),
        status: None,
        status_reason: None,
        agent_connected: None,
        registered_at: None,
        capacity_provider: None,
        running_tasks: None,
        pending_tasks: None,
    }
}

/// Everything listed but one kind, which failed.
fn inventory(failed: Option<ResourceKind>, machines: Vec<EcsContainerInstance>) -> Inventory {
    let outcome = |kind| match failed {
        Some(failed) if failed == kind => Outcome::Failed {
            what: "batch:ListJobs".into(),
            why: Failure { kind: FailureKind::Denied, message: "no".into() },
        },
        _ => Outcome::Complete { listed: 0 },
    };
    let listings = KINDS.into_iter().map(|kind| Listing::of(&scope(), kind, outcome(kind))).collect();
    Inventory { ecs_container_instances: machines, listings, ..Inventory::default() }
}

fn of(inventory: &Inventory, instance: &str) -> machine::Scheduler {
    inventory.schedulers(Provider::Aws, "123456789012", "eu-central-1").of(instance)
}

#[test]
fn a_registered_machine_belongs_to_its_cluster_and_another_to_none() {
    let inventory = inventory(None, vec![machine("a", Some("i-1"))]);
    let machine::Scheduler::Has(owner) = of(&inventory, "i-1") else { panic!("{:?}", of(&inventory, "i-1")) };
    assert_eq!(owner.to_string(), "ECS cluster web (by `its ECS cluster's own list`)");
    assert_eq!(of(&inventory, "i-2"), machine::Scheduler::NotListed);
}

#[test]
fn any_list_that_failed_may_have_held_any_machine() {
    for kind in KINDS {
        let inventory = inventory(Some(kind), vec![machine("a", Some("i-1"))]);
        let why = "batch:ListJobs: denied: no".to_owned();
        assert_eq!(of(&inventory, "i-2"), machine::Scheduler::Unknown { why }, "{kind:?}");
        assert!(matches!(of(&inventory, "i-1"), machine::Scheduler::Has(_)), "what is known stays known");
    }
    let nobody = of(&Inventory::default(), "i-1");
    assert!(matches!(nobody, machine::Scheduler::Unknown { .. }), "{nobody:?}");
    let elsewhere = inventory(None, Vec::new()).schedulers(Provider::Aws, "123456789012", "us-east-1").of("i-1");
    assert!(matches!(elsewhere, machine::Scheduler::Unknown { .. }), "{elsewhere:?}");
}

#[test]
fn a_container_instance_that_hides_its_machine_may_be_any() {
    let inventory = inventory(None, vec![machine("a", None)]);
    assert!(matches!(of(&inventory, "i-1"), machine::Scheduler::Unknown { .. }));
}
