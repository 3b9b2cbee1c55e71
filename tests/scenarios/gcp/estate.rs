//! The project that is read.

use lab::gcp::{Google, PROJECT};
use model::ResourceKind;
use serde_json::{Value, json};
use sweeper::inventory::Kind;

pub(super) const HERE: &str = "zones/europe-west3-a";
pub(super) const THERE: &str = "zones/europe-west3-b";
pub(super) const INSTANCES: &str = "compute.instances.aggregatedList";
pub(super) const DISKS: &str = "compute.disks.aggregatedList";
pub(super) const KINDS: [Kind; 6] = [
    Kind::Resource(ResourceKind::Instance),
    Kind::Resource(ResourceKind::Volume),
    Kind::Resource(ResourceKind::Address),
    Kind::Resource(ResourceKind::AutoScalingGroup),
    Kind::Usage,
    Kind::MachineType,
];

fn url(path: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/{path}")
}

/// A machine as Google describes it.
pub(super) fn machine(place: &str, number: u64, status: &str) -> Value {
    json!({
        "kind": "compute#instance", "id": number.to_string(), "name": format!("align-{number}"), "status": status,
        "zone": url(place), "machineType": url(&format!("{place}/machineTypes/n2-standard-8")),
        "creationTimestamp": "2026-01-02T03:04:05.678-08:00", "lastStartTimestamp": "2026-02-03T04:05:06.789-08:00",
        "scheduling": {"provisioningModel": "STANDARD", "preemptible": false}, "labels": {"owner": "genomics"},
        "disks": [{"type": "PERSISTENT", "boot": true, "autoDelete": true, "deviceName": "boot",
                   "source": url(&format!("{place}/disks/align-{number}"))}],
        "networkInterfaces": [{"name": "nic0", "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "natIP": "203.0.113.7"}]}],
    })
}

fn disk(place: &str, name: &str, user: Option<&str>) -> Value {
    let mut disk = json!({"id": "7", "name": name, "status": "READY", "sizeGb": "500", "zone": url(place),
        "type": url(&format!("{place}/diskTypes/pd-ssd")), "creationTimestamp": "2026-01-02T03:04:05.678-08:00"});
    if let Some(user) = user {
        disk["users"] = json!([url(&format!("{place}/instances/{user}"))]);
    }
    disk
}

/// Machines of every state, two disks, two public addresses and one private, two groups, and the type in use.
pub(super) async fn furnish(google: &Google) {
    let states = ["RUNNING", "TERMINATED", "STOPPED", "SUSPENDED", "STAGING", "REPAIRING", "PENDING_STOP"];
    let numbered = states.into_iter().zip(1_000_u64..);
    let machines: Vec<Value> = numbered.map(|(status, number)| machine(HERE, number, status)).collect();
    google.resources(PROJECT, "instances", HERE, &machines).await;
    let mut spot = machine(THERE, 2_000, "RUNNING");
    spot["scheduling"] = json!({"provisioningModel": "SPOT"});
    spot["metadata"] = json!({"items": [
        {"key": "created-by", "value": "projects/42/zones/europe-west3-b/instanceGroupManagers/workers"}
    ]});
    google.resources(PROJECT, "instances", THERE, &[spot]).await;
    google
        .resources(PROJECT, "disks", HERE, &[disk(HERE, "align-1000", Some("align-1000")), disk(HERE, "data", None)])
        .await;
    let address = |name: &str, kind: &str, status: &str| json!({"id": "8", "name": name, "address": "203.0.113.9", "addressType": kind, "status": status});
    google.resources(PROJECT, "addresses", "global", &[address("web", "EXTERNAL", "RESERVED")]).await;
    let regional = [address("nat", "EXTERNAL", "IN_USE"), address("inner", "INTERNAL", "RESERVED")];
    google.resources(PROJECT, "addresses", "regions/europe-west3", &regional).await;
    let group = |name: &str| json!({"id": "9", "name": name, "targetSize": 2, "status": {"isStable": true}});
    google.resources(PROJECT, "instanceGroupManagers", THERE, &[group("workers")]).await;
    google.resources(PROJECT, "instanceGroupManagers", "regions/europe-west3", &[group("regional")]).await;
    for place in [HERE, THERE] {
        let shape = json!({"name": "n2-standard-8", "guestCpus": 8, "memoryMb": 32_768, "isSharedCpu": false});
        google.types(PROJECT, place, &[shape]).await;
    }
}

/// So many of each kind.
pub(super) const FURNISHED: [usize; 6] = [8, 2, 2, 2, 0, 2];
