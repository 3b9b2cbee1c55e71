use super::*;
use model::Provider;

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() }
}

fn answer(groups: &str) -> String {
    format!(
        "<DescribeAutoScalingGroupsResponse xmlns='http://autoscaling.amazonaws.com/doc/2011-01-01/'>\
         <DescribeAutoScalingGroupsResult>{groups}<NextToken>t</NextToken></DescribeAutoScalingGroupsResult>\
         <ResponseMetadata/></DescribeAutoScalingGroupsResponse>"
    )
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn the_answer_says_which_facts_it_holds() {
    let groups = "<AutoScalingGroups>\
         <member><MinSize>0</MinSize><Instances><member><InstanceId>i-1</InstanceId></member>\
         <member><ProtectedFromScaleIn>false</ProtectedFromScaleIn></member></Instances></member>\
         <member><Instances/></member>\
         </AutoScalingGroups>";
    let told = told(answer(groups).as_bytes()).expect("well-formed");
    assert_eq!(
        told,
        Some(vec![
            Told {
                own: set(&["MinSize", "Instances"]),
                members: vec![set(&["InstanceId"]), set(&["ProtectedFromScaleIn"])]
            },
            Told { own: set(&["Instances"]), members: Vec::new() },
        ])
    );
    assert_eq!(super::told(answer("<AutoScalingGroups/>").as_bytes()).expect("well-formed"), Some(Vec::new()));
    assert_eq!(super::told(answer("").as_bytes()).expect("well-formed"), None);
    assert!(super::told(b"no XML").is_err());
}

/// A record as the SDK gives it: what the answer lacked is filled in.
fn record() -> types::AutoScalingGroup {
    types::AutoScalingGroup::builder()
        .auto_scaling_group_name("workers")
        .min_size(0)
        .max_size(0)
        .desired_capacity(0)
        .launch_configuration_name("")
        .instances(
            types::Instance::builder()
                .instance_id("i-1")
                .lifecycle_state("no value was set".into())
                .health_status("")
                .protected_from_scale_in(false)
                .build(),
        )
        .build()
}

#[test]
fn what_the_sdk_filled_in_is_not_taken_for_said() {
    let told = Told { own: set(&["MinSize", "Instances"]), members: vec![set(&["InstanceId"])] };
    let group = group(&scope(), &record(), &told).expect("a group with a name");
    assert_eq!((group.min_size, group.max_size, group.desired_capacity), (Some(0), None, None));
    assert_eq!(group.launch, None);
    let member = Member {
        instance_id: "i-1".into(),
        lifecycle_state: None,
        health: None,
        protected_from_scale_in: None,
        zone: None,
        weight: None,
    };
    assert_eq!(group.members, Some(vec![member]));
}

#[test]
fn what_was_said_is_kept() {
    let all = set(&["InstanceId", "LifecycleState", "ProtectedFromScaleIn"]);
    let told = Told { own: set(&["MinSize", "MaxSize", "DesiredCapacity"]), members: vec![all] };
    let template = types::LaunchTemplateSpecification::builder().launch_template_id("lt-1").version("$Latest").build();
    let mut record = record();
    record.mixed_instances_policy = Some(
        types::MixedInstancesPolicy::builder()
            .launch_template(types::LaunchTemplate::builder().launch_template_specification(template).build())
            .build(),
    );
    let group = group(&scope(), &record, &told).expect("a group with a name");
    assert_eq!((group.min_size, group.max_size, group.desired_capacity), (Some(0), Some(0), Some(0)));
    let template = LaunchTemplate { id: Some("lt-1".into()), name: None, version: Some("$Latest".into()) };
    assert_eq!(group.launch, Some(Launch::Template(template)));
    let member = group.members.expect("its members").remove(0);
    assert_eq!(member.protected_from_scale_in, Some(false));
    assert_eq!(member.lifecycle_state.as_deref(), Some("no value was set"), "a word is a word, if AWS says it");
}

#[test]
fn how_a_group_comes_to_end_machines_is_kept_for_whoever_ends_one() {
    let told = |own: &[&str]| Told { own: set(own), members: vec![set(&["InstanceId"])] };
    let mut record = record();
    record.availability_zones = Some(vec!["eu-central-1a".into(), "eu-central-1b".into()]);
    let suspended = types::SuspendedProcess::builder().process_name("Terminate").build();
    record.suspended_processes = Some(vec![suspended]);
    record.status = Some("Delete in progress".into());
    record.warm_pool_configuration = Some(types::WarmPoolConfiguration::builder().build());
    record.mixed_instances_policy = Some(types::MixedInstancesPolicy::builder().build());
    let member = &mut record.instances.as_mut().expect("members")[0];
    (member.availability_zone, member.weighted_capacity) = (Some("eu-central-1a".into()), Some("2".into()));
    let facts = |own: &[&str]| {
        let group = group(&scope(), &record, &told(own)).expect("a group");
        group.end_facts(model::address::Told::Nothing)
    };
    let all = facts(&["Instances", "SuspendedProcesses"]);
    assert_eq!(all.zones, ["eu-central-1a", "eu-central-1b"].map(str::to_owned).into());
    assert_eq!(all.suspended, Some(set(&["Terminate"])));
    assert_eq!(all.status.as_deref(), Some("Delete in progress"));
    assert!(all.mixes && all.has_warm_pool);
    let member = all.member("i-1").expect("a member");
    assert_eq!((member.zone.as_deref(), member.weight.as_deref()), (Some("eu-central-1a"), Some("2")));
    assert_eq!(facts(&["Instances"]).suspended, None, "an answer that lacks them does not say that there are none");
}

#[test]
fn members_that_cannot_be_told_apart_are_an_error() {
    let told = Told { own: set(&["Instances"]), members: Vec::new() };
    assert!(group(&scope(), &record(), &told).is_err());
    assert!(group(&scope(), &types::AutoScalingGroup::builder().build(), &Told::default()).is_err());
}
