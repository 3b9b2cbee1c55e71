use aws_sdk_ec2::types::{
    EbsInstanceBlockDevice, HibernationOptions, Instance as Record, InstanceBlockDeviceMapping,
    InstanceNetworkInterface, InstanceNetworkInterfaceAssociation as Association, InstancePrivateIpAddress,
    InstanceState as StateRecord, OperatorResponse, Placement, Tag,
};

use super::*;

fn parse(record: &Record) -> Instance {
    instance("123456789012", "eu-central-1", record).expect("an instance with an id")
}

fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}

fn association(address: &str, owner: &str) -> Association {
    Association::builder().public_ip(address).ip_owner_id(owner).build()
}

#[test]
fn a_full_record_keeps_every_fact() {
    let volume = |id: &str, at| {
        EbsInstanceBlockDevice::builder()
            .volume_id(id)
            .delete_on_termination(true)
            .attach_time(DateTime::from_secs(at))
            .build()
    };
    let device = |name: &str, ebs| InstanceBlockDeviceMapping::builder().device_name(name).ebs(ebs).build();
    let record = Record::builder()
        .instance_id("i-1")
        .instance_type("m5.large".into())
        .state(StateRecord::builder().name(InstanceStateName::Running).build())
        .launch_time(DateTime::from_secs(2_000))
        .root_device_name("/dev/xvda")
        .root_device_type(DeviceType::Ebs)
        .block_device_mappings(device("/dev/sdb", volume("vol-data", 1_500)))
        .block_device_mappings(device("/dev/xvda", volume("vol-root", 1_000)))
        .placement(Placement::builder().availability_zone("eu-central-1a").tenancy(types::Tenancy::Default).build())
        .platform_details("Linux/UNIX")
        .usage_operation("RunInstances")
        .network_interfaces(
            InstanceNetworkInterface::builder()
                .network_interface_id("eni-1")
                .association(association("198.51.100.1", "amazon"))
                .private_ip_addresses(
                    InstancePrivateIpAddress::builder().association(association("198.51.100.1", "amazon")).build(),
                )
                .private_ip_addresses(
                    InstancePrivateIpAddress::builder()
                        .association(association("198.51.100.2", "123456789012"))
                        .build(),
                )
                .build(),
        )
        .public_ip_address("198.51.100.1")
        .capacity_reservation_id("cr-1")
        .tags(tag("Name", "align-7"))
        .tags(tag("aws:autoscaling:groupName", "workers"))
        .tags(tag("aws:ec2launchtemplate:id", "lt-1"))
        .tags(tag("aws:ec2launchtemplate:version", "7"))
        .hibernation_options(HibernationOptions::builder().configured(true).build())
        .operator(OperatorResponse::builder().managed(true).principal("ecs.amazonaws.com").build())
        .build();
    let instance = parse(&record);
    assert_eq!(instance.id.to_string(), "aws:123456789012:eu-central-1:i-1");
    assert_eq!(instance.name.as_deref(), Some("align-7"));
    assert_eq!(instance.instance_type.as_deref(), Some("m5.large"));
    assert_eq!(instance.state, InstanceState::Running);
    assert_eq!(instance.launched_at, Timestamp::from_second(2_000).ok());
    assert_eq!(instance.attached_at, Timestamp::from_second(1_000).ok(), "the root volume's, not the first one's");
    assert_eq!(instance.lifecycle, Lifecycle::OnDemand);
    assert_eq!(instance.capacity_reservation.as_deref(), Some("cr-1"));
    assert_eq!(instance.availability_zone.as_deref(), Some("eu-central-1a"));
    assert_eq!(instance.tenancy, Tenancy::Shared);
    assert_eq!(instance.root_device, RootDevice::Ebs);
    let attached = |id: &str, device: &str, at| AttachedVolume {
        id: id.into(),
        device: Some(device.into()),
        attached_at: Timestamp::from_second(at).ok(),
        delete_on_termination: Some(true),
    };
    assert_eq!(instance.volumes, [attached("vol-data", "/dev/sdb", 1_500), attached("vol-root", "/dev/xvda", 1_000)]);
    assert_eq!(instance.network_interfaces, ["eni-1"]);
    assert_eq!(
        instance.launch_template,
        Some(LaunchTemplate { id: Some("lt-1".into()), name: None, version: Some("7".into()) })
    );
    assert_eq!(
        instance.public_ipv4,
        [
            PublicIpv4 { address: "198.51.100.1".into(), elastic: Some(false) },
            PublicIpv4 { address: "198.51.100.2".into(), elastic: Some(true) },
        ]
    );
    assert_eq!(instance.autoscaling_group.as_deref(), Some("workers"));
    assert_eq!(instance.operator.as_deref(), Some("ecs.amazonaws.com"));
    assert_eq!(instance.hibernation_configured, Some(true));
}

#[test]
fn a_record_with_nothing_but_an_id_has_no_invented_facts() {
    let instance = parse(&Record::builder().instance_id("i-1").build());
    assert_eq!(
        instance,
        Instance {
            id: "aws:123456789012:eu-central-1:i-1".parse().expect("a node id"),
            name: None,
            instance_type: None,
            state: InstanceState::Unknown,
            launched_at: None,
            attached_at: None,
            lifecycle: Lifecycle::OnDemand,
            capacity_reservation: None,
            availability_zone: None,
            on_outpost: false,
            platform_details: None,
            usage_operation: None,
            tenancy: Tenancy::Unknown,
            root_device: RootDevice::Unknown,
            instance_store: InstanceStore::Unknown,
            volumes: Vec::new(),
            network_interfaces: Vec::new(),
            public_ipv4: Vec::new(),
            tags: BTreeMap::new(),
            autoscaling_group: None,
            launch_template: None,
            operator: None,
            hibernation_configured: None,
            instance_profile: None,
            google: None,
        }
    );
}

#[test]
fn words_of_a_later_day_are_kept() {
    let record = Record::builder()
        .instance_id("i-1")
        .instance_type("z99.mega".into())
        .state(StateRecord::builder().name("dreaming".into()).build())
        .instance_lifecycle("borrowed".into())
        .root_device_type("crystal".into())
        .placement(Placement::builder().tenancy("floating".into()).build())
        .build();
    let instance = parse(&record);
    assert_eq!(instance.instance_type.as_deref(), Some("z99.mega"));
    assert_eq!(instance.state, InstanceState::Other("dreaming".into()));
    assert_eq!(instance.lifecycle, Lifecycle::Other("borrowed".into()));
    assert_eq!(instance.root_device, RootDevice::Unknown);
    assert_eq!(instance.tenancy, Tenancy::Other("floating".into()));
}

#[test]
fn an_address_whose_owner_is_not_told_may_be_elastic() {
    let record = Record::builder().instance_id("i-1").public_ip_address("198.51.100.1").build();
    assert_eq!(parse(&record).public_ipv4, [PublicIpv4 { address: "198.51.100.1".into(), elastic: None }]);
}

#[test]
fn a_record_that_cannot_be_told_from_another_is_an_error() {
    assert!(instance("123456789012", "eu-central-1", &Record::builder().build()).is_err());
    assert!(instance("123456789012", "eu-central-1", &Record::builder().instance_id("mi-1").build()).is_err());
}

#[test]
fn a_time_beyond_the_calendar_is_no_time() {
    assert_eq!(timestamp(&DateTime::from_secs(i64::MAX)), None);
    assert_eq!(timestamp(&DateTime::from_millis(1_500)), Timestamp::from_millisecond(1_500).ok());
}
