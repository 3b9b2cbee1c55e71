//! When an unused address is to be released, and when not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use guards::Refusal;
use jiff::Timestamp;
use model::{
    HourlyRate,
    address::{AddressFacts, Told},
    plan::{Action, ActionClass, Condition, Loss, Saving},
};
use recommender::rules::{
    Input, Price, VALID_FOR,
    release::{NoPlan, ReleaseInput, plan},
};

const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
const SINCE: Timestamp = Timestamp::constant(1_789_000_000, 0);

fn input(change: impl FnOnce(&mut ReleaseInput)) -> ReleaseInput {
    let unasked = || Told::Unknown { why: "lists do not tell it".to_owned() };
    let mut input = ReleaseInput {
        finding: "f-1".to_owned(),
        record: 2,
        resource: "aws:123456789012:eu-central-1:eipalloc-0123456789abcdef0".parse().unwrap(),
        since: SINCE,
        address: AddressFacts {
            region: "eu-central-1".to_owned(),
            allocation_id: Some("eipalloc-0123456789abcdef0".to_owned()),
            address: Some("203.0.113.8".to_owned()),
            name: Some("old-gateway".to_owned()),
            tags: Some([].into()),
            tied_to: None,
            service: None,
            pool: Some("amazon".to_owned()),
            border_group: None,
            reverse_name: unasked(),
            offered_to: unasked(),
        },
        price: Price::OnDemand(HourlyRate::from_micros(5_000)),
        now: NOW,
    };
    change(&mut input);
    input
}

#[test]
fn the_plan_says_what_it_ends_for_good_and_what_is_looked_at_first() {
    let plan = plan(&input(|_| ())).unwrap();
    let content = plan.content();
    assert_eq!(
        content.title,
        "Release the unused Elastic IP address 203.0.113.8 (old-gateway) in eu-central-1, for good"
    );
    assert_eq!((plan.class(), content.actions.as_slice()), (ActionClass::Destructive, &[Action::ReleaseAddress][..]));
    assert!(content.reversal.is_empty(), "nothing brings it back: {:?}", content.reversal);
    assert_eq!(content.lost, [Loss::ElasticIpv4 { address: "203.0.113.8".to_owned() }]);
    assert!(content.keeps_billing.is_empty());
    assert_eq!(
        content.conditions,
        [
            Condition::TagsPermit,
            Condition::AddressIs { address: "203.0.113.8".to_owned() },
            Condition::TiedToNothing,
            Condition::UnusedSince { at: SINCE },
            Condition::NoReverseName,
            Condition::NotOffered,
        ]
    );
    let Saving::Known { per_hour, per_month, .. } = &content.net_saving else { panic!("{:?}", content.net_saving) };
    assert_eq!((per_hour.to_string().as_str(), per_month.in_cents().as_str()), ("$0.005/h", "$3.65"));
    assert_eq!(plan.valid_until(), NOW + VALID_FOR);
    assert_eq!(
        Action::ReleaseAddress.command_line(&content.resource),
        "aws ec2 release-address --region eu-central-1 --allocation-id eipalloc-0123456789abcdef0"
    );
}

#[test]
fn a_price_that_is_not_known_is_not_zero() {
    let why = "no row".to_owned();
    let plan = plan(&input(|input| input.price = Price::Unknown(why.clone()))).unwrap();
    assert_eq!(plan.content().net_saving, Saving::Unknown { why });
}

#[test]
fn no_plan_is_made_where_a_guard_stands_before_it() {
    let refused = |change: fn(&mut AddressFacts)| plan(&input(|input| change(&mut input.address))).unwrap_err();
    let guarded = |by| NoPlan::Guarded { by };
    assert_eq!(refused(|facts| facts.tags = None), guarded(Refusal::TagsUnreadable));
    let used = refused(|facts| facts.tied_to = Some("eni-1".to_owned()));
    assert_eq!(used, guarded(Refusal::TiedTo { what: "eni-1".to_owned() }));
    let unsaid = |fact: &str| guarded(Refusal::FactUnknown { fact: fact.to_owned() });
    assert_eq!(refused(|facts| facts.address = None), unsaid("address"));
    assert_eq!(refused(|facts| facts.allocation_id = None), unsaid("allocation"));
    let late = plan(&input(|input| input.now = Timestamp::MAX)).unwrap_err();
    assert_eq!(late, NoPlan::ExpiryOutOfRange);
}

#[test]
fn the_same_input_makes_the_same_plan() {
    let kept = serde_json::to_string(&input(|_| ())).unwrap();
    let read: ReleaseInput = serde_json::from_str(&kept).unwrap();
    let again = Input::Release(Box::new(read)).plan().unwrap();
    assert_eq!(again.content_hash(), plan(&input(|_| ())).unwrap().content_hash());
}
