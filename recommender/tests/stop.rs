//! The *stop* rule: a plan for an idle machine that may be stopped, a named reason for every other one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    HourlyRate, Usd, Verdict,
    address::Told,
    machine::{
        AutoScaling, ComputeEngineFacts, Ec2Facts, InstanceStore, Lifecycle, Machine, Protection, PublicIpv4, Root,
        Scheduler,
    },
    plan::{Action, ActionClass, Charge, ChargeCost, ChargePrice, Condition, Loss, Plan, PlanContent, Saving},
};
use proptest::prelude::*;
use recommender::rules::stop::{self, NoPlan, Price, StopInput};
use serde_json::{Value, json};

fn facts() -> Ec2Facts {
    Ec2Facts {
        account: "123456789012".into(),
        region: "eu-central-1".into(),
        instance_id: "i-0123456789abcdef0".into(),
        name: Some("align-7".into()),
        instance_type: Some("m5.large".into()),
        state: Some("running".into()),
        launched_at: "2026-11-01T06:30:00Z".parse().ok(),
        lifecycle: Lifecycle::OnDemand,
        capacity_reservation: None,
        root: Root::Ebs,
        instance_store: InstanceStore::Unknown,
        hibernates: None,
        volumes: vec!["vol-root".into(), "vol-data".into()],
        public_ipv4: vec![
            PublicIpv4 { address: "198.51.100.1".into(), elastic: Some(false) },
            PublicIpv4 { address: "198.51.100.2".into(), elastic: Some(true) },
        ],
        tags: Some(BTreeMap::from([("Name".to_owned(), "align-7".to_owned())])),
        autoscaling: AutoScaling::NotListed,
        scheduler: Scheduler::NotListed,
        operator: None,
        protection: Protection::Off,
    }
}

fn input(change: impl FnOnce(&mut Ec2Facts)) -> StopInput {
    let mut facts = facts();
    change(&mut facts);
    StopInput {
        finding: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
        record: 2,
        resource: "aws:123456789012:eu-central-1:i-0123456789abcdef0".parse().unwrap(),
        verdict: Verdict::Idle,
        machine: Machine::Ec2(Box::new(facts)),
        lent_ipv4: None,
        price: Price::OnDemand(HourlyRate::from_micros(115_000)),
        now: "2026-11-21T10:00:00Z".parse().unwrap(),
    }
}

fn content(change: impl FnOnce(&mut Ec2Facts)) -> PlanContent {
    stop::plan(&input(change)).unwrap().content().clone()
}

fn refusal(change: impl FnOnce(&mut Ec2Facts)) -> Value {
    serde_json::to_value(stop::plan(&input(change)).unwrap_err()).unwrap()
}

fn tag(facts: &mut Ec2Facts, key: &str, value: &str) {
    facts.tags.as_mut().unwrap().insert(key.into(), value.into());
}

#[test]
fn the_whole_plan() {
    insta::assert_json_snapshot!(stop::plan(&input(|_| ())).unwrap());
}

#[test]
fn what_a_stop_in_google_cloud_saves_says_which_discounts_it_leaves_out() {
    let machine = ComputeEngineFacts {
        project: "omics-prod-1".into(),
        zone: "europe-west3-a".into(),
        number: "1000".into(),
        name: Some("align-7".into()),
        machine_type: Some("n2-standard-8".into()),
        state: Some("running".into()),
        started_at: "2026-11-01T06:30:00Z".parse().ok(),
        lifecycle: Lifecycle::OnDemand,
        ends_by: None,
        reservation: None,
        is_on_own_host: false,
        local_ssds: 0,
        needs_key: false,
        deletion_protection: Some(false),
        resource_policies: Vec::new(),
        labels: Some(BTreeMap::new()),
        created_by: None,
        disks: vec!["align-7".into()],
        public_ipv4: Vec::new(),
        groups: Told::Nothing,
    };
    let resource = "gcp:omics-prod-1:europe-west3-a:1000".parse().unwrap();
    let of_google = StopInput { resource, machine: Machine::ComputeEngine(Box::new(machine)), ..input(|_| ()) };
    let Saving::Known { basis, .. } = stop::plan(&of_google).unwrap().content().net_saving.clone() else { panic!() };
    assert!(
        basis.contains("sustained use") && basis.contains("commitments") && !basis.contains("savings plan"),
        "{basis}"
    );
}

#[test]
fn no_plan_is_made_for_a_machine_that_somebody_has_protected() {
    let refused = refusal(|facts| facts.protection = Protection::On { by: "stop protection".into() });
    assert_eq!(refused, json!({"no_plan": "guarded", "refused": "protected", "by": "stop protection" }));
    let unread = refusal(|facts| facts.protection = Protection::Unknown);
    assert_eq!(unread, json!({"no_plan": "guarded", "refused": "protection_unreadable" }));
    let not_yet = refusal(|facts| facts.protection = Protection::NotYet);
    assert_eq!(not_yet, json!({"no_plan": "guarded", "refused": "protection_not_yet_known" }));
    // It is looked up again before anything is done.
    let conditions = content(|_| ()).conditions;
    assert!(conditions.contains(&Condition::NotProtected), "{conditions:?}");
}

#[test]
fn only_an_idle_machine_gets_a_plan() {
    for verdict in [Verdict::Active, Verdict::Waiting, Verdict::Stuck, Verdict::Unknown] {
        assert_eq!(stop::plan(&StopInput { verdict, ..input(|_| ()) }), Err(NoPlan::NotIdle { verdict }));
    }
    assert_eq!(stop::plan(&StopInput { machine: Machine::OnPrem, ..input(|_| ()) }), Err(NoPlan::OnPrem));
}

#[test]
fn every_refusal_names_its_reason() {
    type Change = fn(&mut Ec2Facts);
    let table: [(Change, Value); 14] = [
        (|f| f.tags = None, json!({"no_plan": "guarded", "refused": "tags_unreadable"})),
        (
            |f| tag(f, "cloud-sweeper:exempt", ""),
            json!({"no_plan": "guarded", "refused": "exempt", "tag": "cloud-sweeper:exempt"}),
        ),
        (|f| f.state = None, json!({"no_plan": "guarded", "refused": "fact_unknown", "fact": "state"})),
        (
            |f| f.state = Some("stopped".into()),
            json!({"no_plan": "guarded", "refused": "not_running", "state": "stopped"}),
        ),
        (|f| f.lifecycle = Lifecycle::Spot, json!({"no_plan": "guarded", "refused": "spot"})),
        (|f| f.lifecycle = Lifecycle::CapacityBlock, json!({"no_plan": "guarded", "refused": "capacity_block"})),
        (
            |f| f.capacity_reservation = Some("cr-1".into()),
            json!({"no_plan": "guarded", "refused": "capacity_reserved", "id": "cr-1"}),
        ),
        (
            |f| f.lifecycle = Lifecycle::Other("borrowed".into()),
            json!({"no_plan": "guarded", "refused": "lifecycle_not_known", "lifecycle": "borrowed"}),
        ),
        (|f| f.root = Root::InstanceStore, json!({"no_plan": "guarded", "refused": "instance_store_root"})),
        (
            |f| f.root = Root::Unknown,
            json!({"no_plan": "guarded", "refused": "fact_unknown", "fact": "root device type"}),
        ),
        (|f| f.instance_store = InstanceStore::Present, json!({"no_plan": "guarded", "refused": "has_instance_store"})),
        (|f| f.instance_type = None, json!({"no_plan": "guarded", "refused": "fact_unknown", "fact": "instance type"})),
        (|f| f.launched_at = None, json!({"no_plan": "guarded", "refused": "fact_unknown", "fact": "launch time"})),
        (
            |f| f.operator = Some("eks.amazonaws.com".into()),
            json!({"no_plan": "guarded", "refused": "member_of",
                   "owner": {"kind": "AWS service", "name": "eks.amazonaws.com", "known_by": "operator"}}),
        ),
    ];
    for (change, expected) in table {
        assert_eq!(refusal(change), expected);
    }
}

#[test]
fn an_address_of_unknown_kind_may_be_lost_and_may_be_billed() {
    let plan = content(|f| f.public_ipv4 = vec![PublicIpv4 { address: "198.51.100.3".into(), elastic: None }]);
    let address = "198.51.100.3".to_owned();
    assert!(plan.lost.contains(&Loss::PublicIpv4 { address: address.clone(), may_be_elastic: true }));
    assert!(plan.keeps_billing.contains(&Charge::ElasticIpv4 { address, may_be_released: true }));
}

#[test]
fn an_unknown_price_is_an_unknown_saving() {
    let plan = stop::plan(&StopInput { price: Price::Unknown("no row".into()), ..input(|_| ()) }).unwrap();
    assert_eq!(plan.content().net_saving, Saving::Unknown { why: "no row".into() });
}

#[test]
fn a_stop_saves_what_the_addresses_cost_that_it_gives_back_and_no_others() {
    let ip = |address: &str, elastic| PublicIpv4 { address: address.into(), elastic };
    let saving = |lent_ipv4: Option<Price>, public_ipv4: Vec<PublicIpv4>| {
        let input = StopInput { lent_ipv4, ..input(|facts| facts.public_ipv4 = public_ipv4) };
        match stop::plan(&input).unwrap().content().net_saving.clone() {
            Saving::Known { per_hour, per_month, basis } => {
                assert_eq!(per_month, per_hour.per_month());
                (per_hour.to_string(), basis)
            }
            Saving::Unknown { why } => panic!("{why}"),
        }
    };
    let each = || Some(Price::OnDemand(HourlyRate::from_micros(5_000)));
    let (lent, kept, unknown) = (ip("1.1.1.1", Some(false)), ip("2.2.2.2", Some(true)), ip("3.3.3.3", None));
    // What earlier versions kept says nothing of addresses, and comes to the same plan as then.
    let (alone, basis) = saving(None, vec![lent.clone()]);
    assert!(alone == "$0.115/h" && basis.contains("of the instance alone, over 730 hours"), "{alone}: {basis}");
    assert_eq!(saving(each(), vec![kept.clone(), unknown]), (alone.clone(), basis.clone()));
    let (one, told) = saving(each(), vec![lent.clone(), kept]);
    assert!(one == "$0.12/h" && told.contains("and of its public address, over"), "{one}: {told}");
    let two = saving(each(), vec![lent.clone(), ip("4.4.4.4", Some(false))]);
    assert_eq!(two.0, "$0.125/h");
    // A price that is not known is no part of the plan, and neither is its reason: it may be another one tomorrow.
    let not_known = |why: &str| saving(Some(Price::Unknown(why.into())), vec![lent.clone()]);
    let (at_least, told) = not_known("denied");
    assert!(at_least == alone && told.contains("is not known, and saved besides"), "{at_least}: {told}");
    assert_eq!(not_known("throttled"), (at_least, told));
}

#[test]
fn prices_of_what_goes_on_to_be_billed_stand_beside_the_plan_and_not_in_its_hash() {
    let plain = stop::plan(&input(|_| ())).unwrap();
    let charge = plain.content().keeps_billing[0].clone();
    let price = |cost| ChargePrice { charge: charge.clone(), what: Some("100 GiB gp3".into()), cost };
    let known = price(ChargeCost::Known { per_month: Usd::from_micros(8_000_000), as_of: None });
    let unknown = price(ChargeCost::Unknown { why: "denied".into() });
    let priced = plain.clone().priced(vec![known.clone()]);
    assert_eq!(priced.content_hash(), plain.content_hash());
    assert_eq!(plain.clone().priced(vec![unknown]).content_hash(), plain.content_hash());
    let told: Vec<_> = priced.charges().map(|(charge, price)| (charge.clone(), price.cloned())).collect();
    assert_eq!(told[0], (charge, Some(known)));
    assert!(told.len() > 1 && told[1..].iter().all(|(_, price)| price.is_none()), "{told:?}");
    // They come back with it; a reader of the plan alone reads the plan.
    let text = serde_json::to_string(&priced).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), priced);
    assert_eq!(serde_json::from_str::<PlanContent>(&text).unwrap(), *plain.content());
}

#[test]
fn a_plan_does_one_thing_which_another_takes_back() {
    let plan = stop::plan(&input(|_| ())).unwrap();
    assert_eq!(plan.class(), ActionClass::Reversible);
    let PlanContent { actions, reversal, resource, .. } = plan.content();
    assert_eq!((actions.as_slice(), reversal.as_slice()), (&[Action::StopInstance][..], &[Action::StartInstance][..]));
    let real = "aws ec2 stop-instances --region eu-central-1 --instance-ids i-0123456789abcdef0";
    assert_eq!(actions[0].command_line(resource), real, "nothing is forced");
    assert_eq!(reversal[0].command_line(resource), real.replace("stop", "start"));
}

#[test]
fn what_was_set_up_to_hibernate_hibernates_and_keeps_its_memory_unless_that_fails() {
    let plan = content(|facts| facts.hibernates = Some(true));
    assert_eq!(plan.title, "Hibernate the idle m5.large instance i-0123456789abcdef0 (align-7) in eu-central-1");
    assert_eq!(
        (plan.actions.as_slice(), plan.reversal.as_slice()),
        (&[Action::HibernateInstance][..], &[Action::StartInstance][..])
    );
    let real = "aws ec2 stop-instances --region eu-central-1 --instance-ids i-0123456789abcdef0 --hibernate";
    assert_eq!(plan.actions[0].command_line(&plan.resource), real, "nothing is forced");
    assert_eq!(plan.actions[0].class(), ActionClass::Reversible);
    assert!(plan.lost.contains(&Loss::MemoryUnlessHibernated) && !plan.lost.contains(&Loss::Memory), "{:?}", plan.lost);
    // What nobody said, or said not to be, is a plain stop.
    for hibernates in [None, Some(false)] {
        let plan = content(|facts| facts.hibernates = hibernates);
        assert_eq!((plan.actions, plan.lost.contains(&Loss::Memory)), (vec![Action::StopInstance], true));
    }
}

#[test]
fn no_two_plans_have_one_hash() {
    let of = |record| stop::plan(&StopInput { record, ..input(|_| ()) }).unwrap();
    let (first, second) = (of(1), of(2));
    assert_ne!(first.content_hash(), second.content_hash(), "an approval of the first is none of the second");
    assert!(first.is_like(&second));
    let larger = stop::plan(&input(|facts| facts.instance_type = Some("m5.xlarge".into()))).unwrap();
    assert!(!larger.is_like(&second));
    assert_eq!(first.valid_until(), input(|_| ()).now + stop::VALID_FOR);
}

#[test]
fn a_plan_that_was_tampered_with_is_not_read_back() {
    let plan = stop::plan(&input(|_| ())).unwrap();
    let stored = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(stored.clone()).unwrap(), plan);
    // Until when it is valid, an approval keeps by itself.
    for path in leaves(&stored, String::new()).into_iter().filter(|path| path != "/valid_until") {
        let mut changed = stored.clone();
        let leaf = changed.pointer_mut(&path).unwrap();
        *leaf = match leaf.take() {
            Value::Bool(yes) => Value::Bool(!yes),
            Value::Number(n) => json!(n.as_i64().unwrap() + 1),
            Value::String(text) => match text.parse::<Timestamp>() {
                Ok(at) => json!(at + jiff::SignedDuration::from_secs(1)),
                Err(_) => json!(format!("{text}x")),
            },
            other => panic!("{path} is {other}"),
        };
        assert!(serde_json::from_value::<Plan>(changed).is_err(), "{path} can be changed unseen");
    }
}

/// The paths of all values that hold no others.
fn leaves(value: &Value, path: String) -> Vec<String> {
    match value {
        Value::Object(map) => map.iter().flat_map(|(key, inner)| leaves(inner, format!("{path}/{key}"))).collect(),
        Value::Array(items) => items.iter().enumerate().flat_map(|(n, i)| leaves(i, format!("{path}/{n}"))).collect(),
        Value::Null => Vec::new(),
        _ => vec![path],
    }
}

fn word() -> impl Strategy<Value = String> {
    "[ -~]{0,12}"
}

prop_compose! {
    fn any_facts()(
        name in proptest::option::of(word()),
        instance_type in proptest::option::weighted(0.9, word()),
        state in proptest::option::weighted(0.9, prop_oneof![4 => Just("running".to_owned()), 1 => word()]),
        launched_at in proptest::option::weighted(0.9, 0_i64..4_000_000_000),
        lifecycle in prop_oneof![
            6 => Just(Lifecycle::OnDemand), 1 => Just(Lifecycle::Spot), 1 => Just(Lifecycle::CapacityBlock),
            1 => word().prop_map(Lifecycle::Other)
        ],
        capacity_reservation in proptest::option::weighted(0.1, word()),
        root in prop_oneof![4 => Just(Root::Ebs), 1 => Just(Root::InstanceStore), 1 => Just(Root::Unknown)],
        instance_store in prop_oneof![
            Just(InstanceStore::Absent), Just(InstanceStore::Present), Just(InstanceStore::Unknown)
        ],
        volumes in proptest::collection::vec(word(), 0..3),
        addresses in proptest::collection::vec((word(), any::<Option<bool>>()), 0..3),
        tags in proptest::option::weighted(0.9, proptest::collection::btree_map(word(), word(), 0..3)),
    ) -> Ec2Facts {
        Ec2Facts {
            name, instance_type, state, lifecycle, capacity_reservation, root, instance_store, volumes, tags,
            launched_at: launched_at.and_then(|s| Timestamp::from_second(s).ok()),
            public_ipv4: addresses.into_iter().map(|(address, elastic)| PublicIpv4 { address, elastic }).collect(),
            ..facts()
        }
    }
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        4 => Just(Verdict::Idle), 1 => Just(Verdict::Active), 1 => Just(Verdict::Waiting), 1 => Just(Verdict::Stuck),
        1 => Just(Verdict::Unknown)
    ]
}

proptest! {
    #[test]
    fn whatever_is_planned_is_idle_running_on_demand_and_survives_storage(
        facts in any_facts(), verdict in any_verdict(), rate in proptest::option::of(1_i64..1_000_000_000),
    ) {
        let price = rate.map_or(Price::Unknown("no row".into()), |m| Price::OnDemand(HourlyRate::from_micros(m)));
        let input = StopInput { verdict, price, machine: Machine::Ec2(Box::new(facts.clone())), ..input(|_| ()) };
        if let Ok(plan) = stop::plan(&input) {
            prop_assert_eq!(verdict, Verdict::Idle);
            prop_assert_eq!(facts.state.as_deref(), Some("running"));
            prop_assert_eq!(facts.lifecycle, Lifecycle::OnDemand);
            prop_assert_eq!(&facts.capacity_reservation, &None);
            prop_assert_eq!(facts.root, Root::Ebs);
            prop_assert!(facts.tags.is_some());
            prop_assert_eq!(rate.is_some(), matches!(plan.content().net_saving, Saving::Known { .. }));
            prop_assert_eq!(&stop::plan(&input).unwrap(), &plan, "the same input gives the same plan");
            let stored = serde_json::to_string(&plan).unwrap();
            prop_assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
        }
    }
}
