//! What AWS really answered once is read as it stands; what it leaves out, adds or renames tomorrow breaks no list.
//!
//! Every element of every answer is cut out once, and every place that holds elements gets one more that nobody knows:
//! these are all cases, not some. Groups and machine types are *made*, by moto: the recorded answer has no group, and no recording
//! of EC2 tells of types.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::ResourceKind;
use std::collections::BTreeSet;

use lab::{
    aws::{self, ACCOUNT, Group, Instance, Member, Moto},
    recorded::{Recorded, recording},
    xml::{elements, with},
};
use sweeper::{
    inventory::{
        FailureKind, Inventory, Kind, Outcome, RetryPolicy, RootDevice, Silent, VolumeState,
        aws::{Options, Session, collect},
    },
    pricing::{self, Unpriced},
};

/// One way of asking, with an answer to it.
struct Answer {
    kind: Kind,
    action: &'static str,
    name: &'static str,
    xml: String,
}

const RECORDINGS: [(Kind, &str, &str); 9] = [
    (Kind::Resource(ResourceKind::Instance), "DescribeInstances", "botocore/ec2-describe-instances.xml"),
    (Kind::Resource(ResourceKind::Volume), "DescribeVolumes", "botocore/ec2-describe-volumes.xml"),
    (Kind::Resource(ResourceKind::Address), "DescribeAddresses", "botocore/ec2-describe-addresses.xml"),
    (Kind::Resource(ResourceKind::Snapshot), "DescribeSnapshots", "botocore/ec2-describe-snapshots.xml"),
    (
        Kind::Resource(ResourceKind::AutoScalingGroup),
        "DescribeAutoScalingGroups",
        "botocore/autoscaling-describe-auto-scaling-groups.xml",
    ),
    (Kind::Image, "DescribeImages", "libcloud/describe_images.xml"),
    (Kind::Resource(ResourceKind::Instance), "DescribeInstances", "libcloud/describe_instances.xml"),
    (Kind::Resource(ResourceKind::Volume), "DescribeVolumes", "libcloud/describe_volumes.xml"),
    (Kind::Resource(ResourceKind::Address), "DescribeAddresses", "libcloud/describe_addresses_all.xml"),
];

/// Whose credentials these are; no recording says that.
const IDENTITY: &str = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>\
    <Account>ACCOUNT</Account></GetCallerIdentityResult></GetCallerIdentityResponse>";

const TYPES: &str = "DescribeInstanceTypes";

/// What is said where nothing is changed. Of types nothing is known then.
fn at_first(action: &str) -> String {
    match RECORDINGS.iter().find(|known| known.1 == action) {
        Some((_, _, name)) => recording(name),
        None => format!("<{action}Response><instanceTypeSet/></{action}Response>"),
    }
}

/// Answers to all lists, of which some are then changed, and a session that asks there.
struct Site {
    recorded: Recorded,
    session: Session,
    options: Options,
}

impl Site {
    async fn new() -> Self {
        let recorded = Recorded::start().await;
        for (_, action, _) in &RECORDINGS[..6] {
            recorded.say(action, at_first(action));
        }
        recorded.say("GetCallerIdentity", IDENTITY.replace("ACCOUNT", ACCOUNT));
        recorded.say(TYPES, at_first(TYPES));
        // Of Batch and ECS there is nothing here; `published` is about them.
        recorded.say("/v1/describecomputeenvironments", "{\"computeEnvironments\": []}");
        recorded.say("/v1/describejobqueues", "{\"jobQueues\": []}");
        recorded.say("ListClusters", "{\"clusterArns\": []}");
        let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        let options = Options { regions: vec!["us-east-1".into()], retry, ..Options::default() };
        let session = Session::open_with(aws::loader(recorded.url()), &options).await.unwrap().unwrap();
        Self { recorded, session, options }
    }

    async fn read(&self) -> Inventory {
        collect(&self.session, &self.options, &Silent).await
    }

    async fn read_with(&self, answer: &Answer, xml: String) -> (Inventory, Result<usize, FailureKind>) {
        self.recorded.say(answer.action, xml);
        let inventory = self.read().await;
        let listing = inventory.listings.iter().find(|listing| listing.kind == Some(answer.kind)).unwrap();
        let outcome = match &listing.outcome {
            Outcome::Complete { listed } => Ok(*listed),
            Outcome::Failed { why, .. } => Err(why.kind),
        };
        (inventory, outcome)
    }
}

/// All recorded answers, and made ones of groups and of the types of the recorded machines.
async fn answers() -> Vec<Answer> {
    let mut answers: Vec<Answer> = RECORDINGS
        .into_iter()
        .map(|(kind, action, name)| Answer { kind, action, name, xml: recording(name) })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let ids = moto.run("us-east-1", &[Instance { count: Some(2), ..Instance::default() }]).await;
    let member = |id: &String| Member { protected: true, ..Member::of(id) };
    let group = Group {
        name: "workers".into(),
        min: 1,
        max: 4,
        desired: 2,
        members: ids.iter().map(member).collect(),
        tags: [("team".to_owned(), "omics".to_owned())].into(),
        ..Group::default()
    };
    moto.groups("us-east-1", &[group]).await;
    let made = async |kind, service: &str, action: &'static str, more: &str| {
        let scope = format!("AWS4-HMAC-SHA256 Credential=AKIA/20261121/us-east-1/{service}/aws4_request");
        let request = reqwest::Client::new().post(moto.url()).header("authorization", scope);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(format!("Action={action}&{more}")).send().await.unwrap();
        Answer { kind, action, name: "moto", xml: answer.text().await.unwrap() }
    };
    let groups = "DescribeAutoScalingGroups";
    answers
        .push(made(Kind::Resource(ResourceKind::AutoScalingGroup), "autoscaling", groups, "Version=2011-01-01").await);
    let types = "Version=2016-11-15&InstanceType.1=m1.small&InstanceType.2=m1.medium";
    answers.push(made(Kind::MachineType, "ec2", TYPES, types).await);
    answers
}

/// Every word of the facts. What is read from less holds no word more, but that something is not known.
fn words(inventory: &Inventory) -> BTreeSet<String> {
    let Inventory { instances, volumes, addresses, snapshots, autoscaling_groups, .. } = inventory;
    let text = format!("{instances:?}{volumes:?}{addresses:?}{snapshots:?}{autoscaling_groups:?}");
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"-_./:".contains(letter)).map(str::to_owned).collect()
}

/// Without these nothing can be told from nothing else: their lack is a failure of the list.
const NEEDED: [&str; 15] = [
    "reservationSet",
    "instancesSet",
    "instancesSet/item/instanceId",
    "volumeSet",
    "volumeSet/item/volumeId",
    "snapshotSet",
    "snapshotSet/item/snapshotId",
    "addressesSet",
    "imagesSet",
    "imagesSet/item/imageId",
    "instanceTypeSet",
    "DescribeAutoScalingGroupsResult",
    "AutoScalingGroups",
    "AutoScalingGroups/member/AutoScalingGroupName",
    "Instances/member/InstanceId",
];

/// One more or less of these is one resource more or less.
const ITEMS: [&str; 9] = [
    "reservationSet/item",
    "instancesSet/item",
    "volumeSet/item",
    "snapshotSet/item",
    "addressesSet/item",
    "imagesSet/item",
    "instanceTypeSet/item",
    // A type without its name is none.
    "instanceTypeSet/item/instanceType",
    "AutoScalingGroups/member",
];

#[tokio::test]
async fn what_aws_answered_once_is_read_as_it_stands() {
    let site = Site::new().await;
    let inventory = site.read().await;
    assert!(inventory.is_complete(), "{:?}", inventory.listings);

    let [windows, linux] = inventory.instances.as_slice() else { panic!("{:?}", inventory.instances) };
    assert_eq!(linux.id.to_string(), format!("aws:{ACCOUNT}:us-east-1:i-fde9cece"));
    assert_eq!((linux.root_device, linux.volumes[0].device.as_deref()), (RootDevice::Ebs, Some("/dev/sda1")));
    assert_eq!(linux.attached_at, "2012-10-16T20:00:21Z".parse().ok());
    assert_eq!((linux.tags.get("notebook").map(String::as_str), windows.tags.len()), (Some(""), 0));
    assert_eq!(windows.public_ipv4[0].address, "54.245.16.142");
    assert_eq!((&linux.platform_details, &linux.usage_operation), (&None, &None), "AWS did not say so in 2013");

    let [second, first] = inventory.volumes.as_slice() else { panic!("{:?}", inventory.volumes) };
    assert_eq!((first.id.id.as_str(), second.id.id.as_str()), ("vol-bc71579a", "vol-a8d2e991"));
    assert_eq!((first.size_gib, second.size_gib, first.iops), (Some(8), Some(30), None));
    assert_eq!(first.attachments.as_ref().unwrap()[0].instance_id.as_deref(), Some("i-fde9cece"));

    let known = |address: &sweeper::inventory::Address| (address.id.id.clone(), address.instance_id.clone());
    let addresses: Vec<_> = inventory.addresses.iter().map(known).collect();
    let free = ["54.245.81.77", "54.245.99.8", "eipalloc-312e1758"].map(|id| (id.to_owned(), None));
    assert_eq!(addresses.into_iter().collect::<BTreeSet<_>>(), free.into());

    assert_eq!(inventory.snapshots.iter().map(|snapshot| snapshot.volume_size_gib.unwrap()).sum::<u32>(), 109);
    assert_eq!(inventory.snapshots.iter().filter(|snapshot| snapshot.description.is_some()).count(), 2);
    assert!(inventory.autoscaling_groups.is_empty());

    for (action, name) in [
        ("DescribeInstances", "libcloud/describe_instances.xml"),
        ("DescribeVolumes", "libcloud/describe_volumes.xml"),
        ("DescribeAddresses", "libcloud/describe_addresses_all.xml"),
    ] {
        site.recorded.say(action, recording(name));
    }
    let inventory = site.read().await;
    assert!(inventory.is_complete(), "{:?}", inventory.listings);
    assert_eq!((inventory.instances.len(), inventory.volumes.len(), inventory.addresses.len()), (2, 3, 4));
    assert_eq!(inventory.volumes.iter().filter(|volume| volume.attachments == Some(Vec::new())).count(), 2);
    let odd = VolumeState::Other("some-unknown-status".into());
    assert!(inventory.volumes.iter().any(|volume| volume.state.as_ref() == Some(&odd)));
    assert_eq!(inventory.addresses.iter().filter(|address| address.association_id.is_some()).count(), 2);
}

#[tokio::test]
async fn an_element_that_is_left_out_is_not_known_and_breaks_no_list() {
    let site = Site::new().await;
    for answer in answers().await {
        let (whole, listed) = site.read_with(&answer, answer.xml.clone()).await;
        let mut known = words(&whole);
        known.extend(["None".to_owned(), "Unknown".to_owned(), String::new()]);
        for element in elements(&answer.xml).iter().filter(|element| element.path.contains('/')) {
            let ends = |list: &[&str]| list.iter().any(|end| element.path.ends_with(&format!("/{end}")));
            let (less, outcome) = site.read_with(&answer, with(&answer.xml, &element.whole, "")).await;
            let case = format!("{} without {}", answer.name, element.path);
            let classic = element.path.ends_with("addressesSet/item/publicIp") && outcome.is_err();
            if ends(&NEEDED) || classic {
                assert!(outcome.is_err(), "{case}: {outcome:?}");
            } else if ends(&ITEMS) {
                assert_eq!(outcome, listed.map(|listed| listed - 1), "{case}");
            } else {
                assert_eq!(outcome, listed, "{case}");
            }
            let invented: Vec<_> = words(&less).difference(&known).cloned().collect();
            assert!(invented.is_empty(), "{case}: {invented:?}");
        }
        site.recorded.say(answer.action, at_first(answer.action));
    }
}

#[tokio::test]
async fn an_element_of_a_later_day_changes_nothing() {
    let site = Site::new().await;
    for answer in answers().await {
        let (whole, _) = site.read_with(&answer, answer.xml.clone()).await;
        for element in elements(&answer.xml) {
            let Some(inner) = &element.inner else { continue };
            if !answer.xml[inner.clone()].contains('<') {
                continue;
            }
            let later = "<brandNew><item>1</item></brandNew>";
            let (more, _) = site.read_with(&answer, with(&answer.xml, &(inner.end..inner.end), later)).await;
            assert!(more == whole, "{} with more in {}: {:?}", answer.name, element.path, more.listings);
        }
        site.recorded.say(answer.action, at_first(answer.action));
    }
}

#[tokio::test]
async fn a_word_of_a_later_day_is_kept_and_breaks_no_list() {
    /// Whether the word is a fact that the inventory holds.
    const WORDS: [(&str, bool); 14] = [
        ("instanceState/name", true),
        ("instancesSet/item/instanceType", true),
        ("placement/tenancy", true),
        ("instancesSet/item/rootDeviceType", false),
        ("instancesSet/item/virtualizationType", false),
        ("instancesSet/item/hypervisor", false),
        ("monitoring/state", false),
        ("volumeSet/item/status", true),
        ("volumeSet/item/volumeType", true),
        ("attachmentSet/item/status", true),
        ("addressesSet/item/domain", false),
        ("snapshotSet/item/status", true),
        ("Instances/member/LifecycleState", true),
        ("Instances/member/HealthStatus", true),
    ];
    let site = Site::new().await;
    let mut met = BTreeSet::new();
    for answer in answers().await {
        let (_, listed) = site.read_with(&answer, answer.xml.clone()).await;
        for element in elements(&answer.xml) {
            let word = WORDS.iter().find(|(word, _)| element.path.ends_with(&format!("/{word}")));
            let (Some((word, kept)), Some(inner)) = (word, &element.inner) else { continue };
            let (later, outcome) = site.read_with(&answer, with(&answer.xml, inner, "brand-new")).await;
            assert_eq!(outcome, listed, "{} {}", answer.name, element.path);
            assert_eq!(words(&later).contains("brand-new"), *kept, "{} {}", answer.name, element.path);
            met.insert(*word);
        }
        site.recorded.say(answer.action, at_first(answer.action));
    }
    assert_eq!(met.len(), WORDS.len(), "{met:?}");
}

#[tokio::test]
async fn a_fact_that_no_resource_tells_is_none_in_all_of_them() {
    type Check = fn(&Inventory) -> bool;
    let facts: [(&str, &str, Check); 22] = [
        ("DescribeInstances", "launchTime", |i| i.instances.iter().all(|x| x.launched_at.is_none())),
        ("DescribeInstances", "instanceType", |i| i.instances.iter().all(|x| x.instance_type.is_none())),
        ("DescribeInstances", "instanceState", |i| i.instances.iter().all(|x| x.state.word().is_none())),
        ("DescribeInstances", "attachTime", |i| i.instances.iter().all(|x| x.attached_at.is_none())),
        ("DescribeInstances", "deleteOnTermination", |i| {
            i.instances.iter().flat_map(|x| &x.volumes).all(|x| x.delete_on_termination.is_none())
        }),
        ("DescribeInstances", "placement", |i| i.instances.iter().all(|x| x.availability_zone.is_none())),
        ("DescribeVolumes", "size", |i| i.volumes.iter().all(|x| x.size_gib.is_none())),
        ("DescribeVolumes", "volumeType", |i| i.volumes.iter().all(|x| x.volume_type.is_none())),
        ("DescribeVolumes", "status", |i| i.volumes.iter().all(|x| x.state.is_none())),
        ("DescribeVolumes", "createTime", |i| i.volumes.iter().all(|x| x.created_at.is_none())),
        ("DescribeVolumes", "snapshotId", |i| i.volumes.iter().all(|x| x.snapshot_id.is_none())),
        ("DescribeVolumes", "attachmentSet", |i| i.volumes.iter().all(|x| x.attachments.is_none())),
        ("DescribeVolumes", "deleteOnTermination", |i| {
            i.volumes.iter().flat_map(|x| x.attachments.iter().flatten()).all(|x| x.delete_on_termination.is_none())
        }),
        ("DescribeSnapshots", "volumeSize", |i| i.snapshots.iter().all(|x| x.volume_size_gib.is_none())),
        ("DescribeSnapshots", "status", |i| i.snapshots.iter().all(|x| x.state.is_none())),
        ("DescribeSnapshots", "startTime", |i| i.snapshots.iter().all(|x| x.started_at.is_none())),
        ("DescribeAutoScalingGroups", "MinSize", |i| i.autoscaling_groups.iter().all(|x| x.min_size.is_none())),
        ("DescribeAutoScalingGroups", "MaxSize", |i| i.autoscaling_groups.iter().all(|x| x.max_size.is_none())),
        ("DescribeAutoScalingGroups", "DesiredCapacity", |i| {
            i.autoscaling_groups.iter().all(|x| x.desired_capacity.is_none())
        }),
        ("DescribeAutoScalingGroups", "Instances", |i| i.autoscaling_groups.iter().all(|x| x.members.is_none())),
        ("DescribeAutoScalingGroups", "ProtectedFromScaleIn", |i| {
            i.autoscaling_groups
                .iter()
                .flat_map(|x| x.members.iter().flatten())
                .all(|x| x.protected_from_scale_in.is_none())
        }),
        ("DescribeAutoScalingGroups", "LifecycleState", |i| {
            i.autoscaling_groups.iter().flat_map(|x| x.members.iter().flatten()).all(|x| x.lifecycle_state.is_none())
        }),
    ];
    let site = Site::new().await;
    for answer in answers().await {
        let (whole, listed) = site.read_with(&answer, answer.xml.clone()).await;
        for (_, fact, is_none) in facts.iter().filter(|(action, ..)| *action == answer.action) {
            if listed == Ok(0) {
                continue;
            }
            assert!(!is_none(&whole), "{} tells {fact}", answer.name);
            let mut xml = answer.xml.clone();
            while let Some(element) = elements(&xml).iter().find(|e| e.path.ends_with(&format!("/{fact}"))) {
                xml = with(&xml, &element.whole, "");
            }
            let (less, outcome) = site.read_with(&answer, xml).await;
            assert_eq!(outcome, listed, "{} without {fact}", answer.name);
            assert!(is_none(&less), "{} without {fact}: {:?}", answer.name, words(&less));
        }
    }
}

#[tokio::test]
async fn what_a_recorded_volume_is_billed_for_is_told_whole_or_not_at_all() {
    let site = Site::new().await;
    let mut priced = 0;
    for answer in answers().await.into_iter().filter(|answer| answer.action == "DescribeVolumes") {
        // They were recorded in another region than this one is asked as.
        let xml = answer.xml.replace("us-west-2", "us-east-1");
        let (whole, _) = site.read_with(&answer, xml.clone()).await;
        for volume in &whole.volumes {
            match pricing::volume(volume) {
                Ok(parts) => {
                    assert!(!parts.is_empty(), "{}: {volume:?}", answer.name);
                    priced += 1;
                }
                Err(why) => assert!(volume.volume_type.is_none(), "{}: {why}: {volume:?}", answer.name),
            }
        }
        for fact in ["size", "volumeType", "availabilityZone"] {
            let mut xml = xml.clone();
            while let Some(element) = elements(&xml).iter().find(|e| e.path.ends_with(&format!("/{fact}"))) {
                xml = with(&xml, &element.whole, "");
            }
            let (less, _) = site.read_with(&answer, xml).await;
            let is_unknown = |volume| matches!(pricing::volume(volume), Err(Unpriced::FactUnknown(_)));
            assert!(less.volumes.iter().all(is_unknown), "{} without {fact}", answer.name);
        }
    }
    assert!(priced > 0);
}
