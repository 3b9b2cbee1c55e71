//! A full record arrives whole, an empty one invents nothing, and a word of a later day is kept.

use super::*;

fn record<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).expect("a record of Google's")
}

fn full() -> serde_json::Value {
    serde_json::json!({
        "id": "1234567890123456789", "name": "align-7", "status": "RUNNING",
        "machineType": "https://www.googleapis.com/compute/v1/projects/omics/zones/europe-west3-a/machineTypes/n2-standard-8",
        "creationTimestamp": "2025-02-03T04:05:06.789-08:00", "lastStartTimestamp": "2026-02-03T04:05:06.000-07:00",
        "scheduling": {"provisioningModel": "STANDARD", "preemptible": false, "instanceTerminationAction": "STOP"},
        "deletionProtection": true, "labels": {"owner": "genomics", "goog-gke-node": ""},
        "disks": [
            {"type": "PERSISTENT", "boot": true, "autoDelete": true, "deviceName": "boot",
             "source": "https://www.googleapis.com/compute/v1/projects/omics/zones/europe-west3-a/disks/align-7"},
            {"type": "SCRATCH", "boot": false, "deviceName": "local-ssd-0"},
        ],
        "networkInterfaces": [{"name": "nic0", "accessConfigs": [{"natIP": "203.0.113.7"}]}],
        "guestAccelerators": [{"acceleratorCount": 2,
            "acceleratorType": "https://www.googleapis.com/compute/v1/projects/omics/zones/z/acceleratorTypes/nvidia-l4"}],
        "metadata": {"items": [{"key": "created-by",
            "value": "projects/42/zones/europe-west3-a/instanceGroupManagers/workers"}]},
    })
}

fn read(json: serde_json::Value) -> Instance {
    instance("omics", "europe-west3-a", record(json)).expect("an instance")
}

#[test]
fn a_full_instance_arrives_whole() {
    let instance = read(full());
    assert_eq!(instance.id.to_string(), "gcp:omics:europe-west3-a:1234567890123456789");
    assert_eq!((instance.name.as_deref(), instance.instance_type.as_deref()), (Some("align-7"), Some("n2-standard-8")));
    assert_eq!((&instance.state, &instance.lifecycle), (&InstanceState::Running, &Lifecycle::OnDemand));
    assert_eq!(instance.launched_at, "2026-02-03T11:05:06Z".parse().ok());
    assert_eq!((instance.root_device, instance.operator.as_deref()), (RootDevice::PersistentDisk, Some("gke")));
    assert_eq!(instance.autoscaling_group.as_deref(), Some("workers"));
    assert_eq!(instance.volumes.len(), 1, "a local disk is no volume");
    assert_eq!(instance.volumes[0].id, "align-7");
    assert_eq!(instance.public_ipv4, [PublicIpv4 { address: "203.0.113.7".into(), elastic: None }]);
    let google = instance.google.as_ref().expect("Google's facts");
    assert_eq!(google.created_at, "2025-02-03T12:05:06.789Z".parse().ok());
    assert_eq!((google.deletion_protection, google.local_ssds), (Some(true), 1));
    assert_eq!(google.accelerators, [Accelerators { kind: Some("nvidia-l4".into()), count: Some(2) }]);
    let ::model::machine::Machine::ComputeEngine(facts) = instance
        .stop_facts(true, &crate::inventory::Schedulers::not_asked(), crate::inventory::Protection::default())
        .expect("facts")
    else {
        panic!("of Google's")
    };
    assert_eq!((facts.project.as_str(), facts.zone.as_str()), ("omics", "europe-west3-a"));
    assert_eq!((facts.number.as_str(), facts.state.as_deref()), ("1234567890123456789", Some("running")));
    assert_eq!((facts.local_ssds, facts.deletion_protection, facts.needs_key), (1, Some(true), false));
    assert!(facts.created_by.is_some() && facts.ends_by.is_none() && facts.reservation.is_none());
    assert!(matches!(facts.groups, ::model::address::Told::Unknown { .. }), "it is asked right before the call");
}

#[test]
fn what_it_is_billed_for_is_read_or_not_known() {
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = full();
        change(&mut json);
        read(json).google.expect("Google's facts").billed
    };
    assert_eq!(with(&|json| json["disks"] = serde_json::json!([])), None, "each machine boots from a disk");
    let billed = with(&|_| {}).expect("bills");
    assert_eq!(
        (billed.local_ssd_gib, billed.confidential, billed.network_tier),
        (None, false, None),
        "no size is said"
    );
    let licensed = with(&|json| {
        let url = |name: &str| format!("https://www.googleapis.com/compute/v1/projects/{name}");
        json["disks"][0]["licenses"] = serde_json::json!([url("rhel-cloud/global/licenses/rhel-9"), "somewhere/else"]);
        json["disks"][1]["diskSizeGb"] = serde_json::json!("375");
        json["confidentialInstanceConfig"] = serde_json::json!({"enableConfidentialCompute": true});
        json["networkPerformanceConfig"] = serde_json::json!({"totalEgressBandwidthTier": "TIER_1"});
    });
    let expected = Billed {
        licenses: vec!["rhel-cloud/rhel-9".to_owned(), "somewhere/else".to_owned()],
        local_ssd_gib: Some(375),
        confidential: true,
        network_tier: Some("TIER_1".to_owned()),
    };
    assert_eq!(licensed, Some(expected));
}

#[test]
fn what_speaks_against_a_stop_is_read() {
    let with = |change: serde_json::Value| {
        let mut json = full();
        json.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        *read(json).google.expect("Google's facts")
    };
    let reserved = |kind: &str, values: serde_json::Value| {
        with(serde_json::json!({"reservationAffinity": {"consumeReservationType": kind, "values": values}})).reservation
    };
    for kind in ["ANY_RESERVATION", "NO_RESERVATION"] {
        assert_eq!(reserved(kind, serde_json::json!([])), None);
    }
    assert_eq!(
        reserved("SPECIFIC_RESERVATION", serde_json::json!(["projects/p/reservations/nightly"])).as_deref(),
        Some("nightly")
    );
    assert_eq!(reserved("BRAND_NEW", serde_json::json!([])).as_deref(), Some("not named"));
    for (scheduling, ends) in [
        (serde_json::json!({"instanceTerminationAction": "DELETE"}), "instanceTerminationAction is DELETE"),
        (serde_json::json!({"maxRunDuration": {"seconds": "3600"}}), "maxRunDuration"),
        (serde_json::json!({"terminationTime": "2026-12-24T18:00:00Z"}), "terminationTime is 2026-12-24T18:00:00Z"),
    ] {
        let ends_by = with(serde_json::json!({"scheduling": scheduling})).ends_by.unwrap_or_default();
        assert!(ends_by.contains(ends), "{ends_by}");
    }
    let policies = serde_json::json!({"resourcePolicies": ["projects/p/regions/r/resourcePolicies/office-hours"]});
    assert_eq!(with(policies).resource_policies, ["office-hours"]);
    let encrypted = |key: serde_json::Value| {
        with(serde_json::json!({"disks": [{"type": "PERSISTENT", "boot": true, "diskEncryptionKey": key}]})).needs_key
    };
    assert!(encrypted(serde_json::json!({"sha256": "x"})));
    assert!(!encrypted(serde_json::json!({"kmsKeyName": "projects/p/keys/k", "sha256": "x"})));
    assert!(with(serde_json::json!({"instanceEncryptionKey": {"sha256": "x"}})).needs_key);
}

#[test]
fn an_instance_that_says_nothing_but_its_number_is_not_known() {
    let instance = read(serde_json::json!({"id": "42"}));
    assert_eq!((&instance.state, &instance.instance_type, &instance.name), (&InstanceState::Unknown, &None, &None));
    assert_eq!((instance.tenancy, instance.root_device), (Tenancy::Unknown, RootDevice::Unknown));
    assert_eq!(instance.lifecycle, Lifecycle::Other("not said".into()));
    assert_eq!(*instance.google.expect("Google's facts"), GoogleInstance::default());
    assert!(super::instance("omics", "z", record(serde_json::json!({"name": "align-7"}))).is_err());
}

#[test]
fn every_state_is_known_and_one_of_a_later_day_is_kept() {
    for (word, state) in [
        ("PENDING", InstanceState::Pending),
        ("PROVISIONING", InstanceState::Pending),
        ("STAGING", InstanceState::Pending),
        ("RUNNING", InstanceState::Running),
        ("STOPPING", InstanceState::Stopping),
        ("STOPPED", InstanceState::Stopped),
        ("TERMINATED", InstanceState::Stopped),
        ("SUSPENDING", InstanceState::Suspending),
        ("SUSPENDED", InstanceState::Suspended),
        ("DEPROVISIONING", InstanceState::ShuttingDown),
        ("PENDING_STOP", InstanceState::Other("PENDING_STOP".into())),
        ("REPAIRING", InstanceState::Other("REPAIRING".into())),
        ("BRAND_NEW", InstanceState::Other("BRAND_NEW".into())),
    ] {
        let mut json = full();
        json["status"] = word.into();
        let instance = read(json);
        assert_eq!(instance.state, state);
        assert_eq!(instance.google.expect("Google's facts").status.as_deref(), Some(word));
    }
}

#[test]
fn spot_is_told_by_either_of_its_names() {
    let bought = |scheduling: serde_json::Value| {
        let mut json = full();
        json["scheduling"] = scheduling;
        read(json).lifecycle
    };
    assert_eq!(bought(serde_json::json!({"provisioningModel": "SPOT"})), Lifecycle::Spot);
    assert_eq!(bought(serde_json::json!({"preemptible": true})), Lifecycle::Spot);
    assert_eq!(bought(serde_json::json!({"preemptible": false})), Lifecycle::OnDemand);
    let flex = serde_json::json!({"provisioningModel": "FLEX_START"});
    assert_eq!(bought(flex), Lifecycle::Other("FLEX_START".into()));
}

#[test]
fn a_disk_is_free_if_nothing_uses_it_and_nothing_says_otherwise() {
    let user = "https://www.googleapis.com/compute/v1/projects/omics/zones/europe-west3-a/instances/align-7";
    let disk = |json: serde_json::Value| {
        let mut whole = serde_json::json!({"id": "7", "name": "data", "sizeGb": "500", "status": "READY",
            "type": "https://www.googleapis.com/compute/v1/projects/omics/zones/europe-west3-a/diskTypes/pd-ssd",
            "zone": "https://www.googleapis.com/compute/v1/projects/omics/zones/europe-west3-a"});
        whole.as_object_mut().expect("an object").extend(json.as_object().expect("an object").clone());
        volume("omics", "europe-west3-a", record(whole)).expect("a disk")
    };
    let free = disk(
        serde_json::json!({"lastAttachTimestamp": "2026-01-01T00:00:00Z", "lastDetachTimestamp": "2026-01-02T00:00:00Z"}),
    );
    assert_eq!((&free.state, free.attachments.as_deref()), (&Some(VolumeState::Available), Some(&[][..])));
    assert_eq!(free.id.to_string(), "gcp:omics:europe-west3-a:disk/data");
    assert_eq!((free.volume_type.as_deref(), free.size_gib), (Some("pd-ssd"), Some(500)));
    assert_eq!(free.google.expect("Google's facts").last_detached_at, "2026-01-02T00:00:00Z".parse().ok());

    let odd = disk(
        serde_json::json!({"lastAttachTimestamp": "2026-01-03T00:00:00Z", "lastDetachTimestamp": "2026-01-02T00:00:00Z"}),
    );
    assert_eq!((&odd.state, odd.attachments), (&Some(VolumeState::Other("READY".into())), None));

    let mut used = [disk(serde_json::json!({"users": [user]}))];
    let machine = |volume: &Volume| volume.attachments.as_ref().expect("told")[0].instance_id.clone();
    assert_eq!(machine(&used[0]).as_deref(), Some("zones/europe-west3-a/instances/align-7"));
    name_machines(&[read(full())], &mut used, &mut []);
    assert_eq!(
        (&used[0].state, machine(&used[0]).as_deref()),
        (&Some(VolumeState::InUse), Some("1234567890123456789"))
    );
}

#[test]
fn only_public_addresses_are_kept_and_each_says_whether_it_is_tied() {
    let of = |json: serde_json::Value| address("omics", "europe-west3", record(json)).expect("an address");
    assert_eq!(of(serde_json::json!({"name": "inner", "addressType": "INTERNAL"})), None);
    let free = of(
        serde_json::json!({"name": "web", "addressType": "EXTERNAL", "status": "RESERVED", "address": "203.0.113.9"}),
    );
    let free = free.expect("a public address");
    assert_eq!(free.id.to_string(), "gcp:omics:europe-west3:address/web");
    assert_eq!((free.public_ipv4.as_deref(), free.association_id), (Some("203.0.113.9"), None));
    assert_eq!(free.google.expect("Google's facts").status.as_deref(), Some("RESERVED"));
    let nat =
        of(serde_json::json!({"name": "nat", "purpose": "NAT_AUTO", "status": "IN_USE", "address": "2001:db8::1"}));
    let nat = nat.expect("a public address");
    assert_eq!((nat.service_managed.as_deref(), nat.public_ipv4), (Some("NAT_AUTO"), None));
}

#[test]
fn a_group_says_its_size_and_never_its_members() {
    let group = group(
        "omics",
        "europe-west3",
        &record(serde_json::json!({"name": "workers", "targetSize": 3,
        "instanceTemplate": "https://www.googleapis.com/compute/v1/projects/omics/global/instanceTemplates/workers-2"})),
    );
    let group = group.expect("a group");
    assert_eq!((group.desired_capacity, &group.members), (Some(3), &None));
    assert_eq!(group.id.to_string(), "gcp:omics:europe-west3:group/workers");
}
