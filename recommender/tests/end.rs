//! When an idle member of a group is to be ended, and when not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use guards::{MemberRefusal, Refusal};
use jiff::Timestamp;
use model::{
    HourlyRate, Verdict,
    address::Told,
    group::{GroupFacts, MemberFacts},
    machine::{
        AutoScaling, Ec2Facts, InstanceStore, Lifecycle, Machine, Owner, Protection, PublicIpv4, Root, Scheduler,
    },
    plan::{Action, ActionClass, Charge, Condition, Loss, Saving},
};
use recommender::rules::{
    Input, Price, VALID_FOR,
    end::{Attached, EndInput, plan},
    stop::NoPlan,
};

const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
const LAUNCHED: Timestamp = Timestamp::constant(1_789_000_000, 0);
const ID: &str = "i-0123456789abcdef0";

fn facts() -> Ec2Facts {
    Ec2Facts {
        account: "123456789012".into(),
        region: "eu-central-1".into(),
        instance_id: ID.into(),
        name: Some("align-7".into()),
        instance_type: Some("m5.large".into()),
        state: Some("running".into()),
        launched_at: Some(LAUNCHED),
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        root: Root::Ebs,
        instance_store: InstanceStore::Present,
        hibernates: None,
        volumes: vec!["vol-root".into(), "vol-data".into(), "vol-untold".into()],
        public_ipv4: vec![
            PublicIpv4 { address: "198.51.100.1".into(), elastic: Some(false) },
            PublicIpv4 { address: "198.51.100.2".into(), elastic: Some(true) },
        ],
        tags: Some([("aws:autoscaling:groupName".to_owned(), "workers".to_owned())].into()),
        autoscaling: AutoScaling::Member("workers".into()),
        scheduler: Scheduler::NotListed,
        operator: None,
        protection: Protection::Off,
    }
}

fn group() -> GroupFacts {
    let member = |id: &str| MemberFacts {
        instance_id: id.into(),
        lifecycle_state: Some("InService".into()),
        health: Some("Healthy".into()),
        protected_from_scale_in: Some(false),
        zone: Some("eu-central-1a".into()),
        weight: None,
    };
    GroupFacts {
        name: "workers".into(),
        min_size: Some(1),
        desired_capacity: Some(2),
        members: Some(vec![member(ID), member("i-2")]),
        zones: ["eu-central-1a".to_owned()].into(),
        suspended: Some([].into()),
        status: None,
        mixes: false,
        has_warm_pool: false,
        refresh: Told::Unknown { why: "lists do not tell it".into() },
        tags: Some([].into()),
    }
}

fn input(change: impl FnOnce(&mut Ec2Facts, &mut GroupFacts)) -> EndInput {
    let (mut facts, mut group) = (facts(), group());
    change(&mut facts, &mut group);
    let volume = |id: &str, goes_with_it| Attached { id: id.into(), goes_with_it };
    EndInput {
        finding: "f-1".into(),
        record: 2,
        resource: format!("aws:123456789012:eu-central-1:{ID}").parse().unwrap(),
        verdict: Verdict::Idle,
        machine: Machine::Ec2(Box::new(facts)),
        group,
        volumes: vec![volume("vol-root", Some(true)), volume("vol-data", Some(false)), volume("vol-untold", None)],
        price: Price::OnDemand(HourlyRate::from_micros(115_000)),
        now: NOW,
    }
}

#[test]
fn the_plan_says_what_it_ends_for_good_and_what_is_looked_at_first() {
    let plan = plan(&input(|_, _| ())).unwrap();
    let content = plan.content();
    assert_eq!(
        content.title,
        "End the idle m5.large instance i-0123456789abcdef0 (align-7) of the Auto Scaling group workers in eu-central-1 for good, and have the group keep up one machine fewer"
    );
    assert_eq!((plan.class(), content.actions.as_slice()), (ActionClass::Destructive, &[Action::EndMember][..]));
    assert!(content.reversal.is_empty(), "nothing brings it back: {:?}", content.reversal);
    assert_eq!(
        content.conditions,
        [
            Condition::TagsPermit,
            Condition::StateIs { state: "running".into() },
            Condition::LaunchedAtIs { at: LAUNCHED },
            Condition::InstanceTypeIs { instance_type: "m5.large".into() },
            Condition::NotProtected,
            Condition::MemberOf { group: "workers".into() },
            Condition::GroupCanShrink,
            Condition::StillIdle,
        ]
    );
    assert_eq!(
        content.lost,
        [
            Loss::Machine { id: ID.into() },
            Loss::Memory,
            Loss::VolumeOfMachine { id: "vol-root".into(), may_stay: false },
            Loss::VolumeOfMachine { id: "vol-untold".into(), may_stay: true },
            Loss::InstanceStore,
            Loss::PublicIpv4 { address: "198.51.100.1".into(), may_be_elastic: false },
        ]
    );
    assert_eq!(
        content.keeps_billing,
        [
            Charge::Volume { id: "vol-data".into() },
            Charge::Volume { id: "vol-untold".into() },
            Charge::ElasticIpv4 { address: "198.51.100.2".into(), may_be_released: false },
            Charge::CommitmentsUnknown,
        ]
    );
    let Saving::Known { per_hour, basis, .. } = &content.net_saving else { panic!("{:?}", content.net_saving) };
    assert!(per_hour.to_string() == "$0.115/h" && basis.starts_with("at the least"), "{per_hour} {basis}");
    assert_eq!(plan.valid_until(), NOW + VALID_FOR);
    assert_eq!(
        Action::EndMember.command_line(&content.resource),
        "aws autoscaling terminate-instance-in-auto-scaling-group --region eu-central-1 --instance-id i-0123456789abcdef0 --should-decrement-desired-capacity"
    );
    assert_eq!(Action::EndMember.ends_in().0, "terminated");
    assert!(!Action::EndMember.has_dry_run() && Action::StopInstance.has_dry_run());
}

#[test]
fn no_plan_is_made_of_a_machine_that_is_not_idle_or_not_ec2s() {
    let of = |change: fn(&mut EndInput)| {
        let mut input = input(|_, _| ());
        change(&mut input);
        plan(&input).unwrap_err()
    };
    for verdict in [Verdict::Active, Verdict::Waiting, Verdict::Stuck, Verdict::Unknown] {
        let mut input = input(|_, _| ());
        input.verdict = verdict;
        assert_eq!(plan(&input), Err(NoPlan::NotIdle { verdict }));
    }
    assert_eq!(of(|input| input.machine = Machine::OnPrem), NoPlan::OnPrem);
    assert_eq!(of(|input| input.now = Timestamp::MAX), NoPlan::ExpiryOutOfRange);
    let google = of(|input| input.machine = Machine::NotKnown("Google Cloud".into()));
    assert_eq!(google, NoPlan::ProviderNotKnown { provider: "Google Cloud".into() });
}

#[test]
fn no_plan_is_made_where_a_guard_stands_before_it() {
    let refused = |change: fn(&mut Ec2Facts, &mut GroupFacts)| plan(&input(change)).unwrap_err();
    let guarded = |by| NoPlan::Guarded { by };
    assert_eq!(refused(|facts, _| facts.tags = None), guarded(Refusal::TagsUnreadable));
    let least = refused(|_, group| group.min_size = Some(2));
    assert_eq!(least, guarded(MemberRefusal::AtMinimum { desired: 2, min: 2 }.into()));
    let owner = Owner { kind: "EKS cluster".into(), name: Some("prod".into()), known_by: "eks:cluster-name".into() };
    let kept =
        refused(|_, group| drop(group.tags.get_or_insert_default().insert("eks:cluster-name".into(), "prod".into())));
    assert_eq!(kept, guarded(Refusal::MemberOf { owner }));
    let unsaid = |fact: &str| guarded(Refusal::FactUnknown { fact: fact.to_owned() });
    assert_eq!(refused(|facts, _| facts.instance_type = None), unsaid("instance type"));
    assert_eq!(refused(|facts, _| facts.launched_at = None), unsaid("launch time"));
}

#[test]
fn what_its_volumes_and_prices_are_is_not_guessed() {
    let why = "no row".to_owned();
    let plan = plan(&EndInput { price: Price::Unknown(why.clone()), ..input(|_, _| ()) }).unwrap();
    assert_eq!(plan.content().net_saving, Saving::Unknown { why });
}

#[test]
fn the_same_input_makes_the_same_plan() {
    let kept = serde_json::to_string(&input(|_, _| ())).unwrap();
    let read: EndInput = serde_json::from_str(&kept).unwrap();
    let again = Input::End(Box::new(read)).plan().unwrap();
    assert_eq!(again.content_hash(), plan(&input(|_, _| ())).unwrap().content_hash());
}
