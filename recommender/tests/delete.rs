//! When an unattached volume is to be deleted, and when not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use guards::Refusal;
use jiff::Timestamp;
use model::{
    HourlyRate,
    address::Told,
    plan::{Action, ActionClass, Charge, Condition, Loss, Saving},
    volume::VolumeFacts,
};
use recommender::rules::{
    Input, Price, VALID_FOR,
    delete::{DeleteInput, NoPlan, plan},
};

const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
const SINCE: Timestamp = Timestamp::constant(1_789_000_000, 0);
const CREATED: Timestamp = Timestamp::constant(1_780_000_000, 0);

fn input(change: impl FnOnce(&mut DeleteInput)) -> DeleteInput {
    let mut input = DeleteInput {
        finding: "f-1".to_owned(),
        record: 2,
        resource: "aws:123456789012:eu-central-1:vol-0123456789abcdef0".parse().unwrap(),
        since: SINCE,
        volume: VolumeFacts {
            region: "eu-central-1".to_owned(),
            volume_id: "vol-0123456789abcdef0".to_owned(),
            name: Some("scratch".to_owned()),
            tags: Some([].into()),
            state: Some("available".to_owned()),
            attached_to: Told::Nothing,
            service: None,
            on_outpost: false,
            zone: Some("eu-central-1a".to_owned()),
            volume_type: Some("gp3".to_owned()),
            size_gib: Some(100),
            iops: Some(3_000),
            throughput_mib_per_s: Some(125),
            created_at: Some(CREATED),
        },
        price: Price::OnDemand(HourlyRate::from_micros(11_000)),
        snapshot_at_most: Price::OnDemand(HourlyRate::from_micros(7_000)),
        now: NOW,
    };
    change(&mut input);
    input
}

#[test]
fn the_plan_says_what_is_copied_what_is_lost_and_what_is_saved_at_the_least() {
    let plan = plan(&input(|_| ())).unwrap();
    let content = plan.content();
    assert_eq!(
        content.title,
        "Take a snapshot of the unattached 100 GiB gp3 volume vol-0123456789abcdef0 (scratch) in eu-central-1, and delete the volume for good"
    );
    assert_eq!((plan.class(), content.actions.as_slice()), (ActionClass::Destructive, &[Action::DeleteVolume][..]));
    assert!(content.reversal.is_empty(), "another volume is no undoing: {:?}", content.reversal);
    let id = || "vol-0123456789abcdef0".to_owned();
    assert_eq!(content.lost, [Loss::Volume { id: id() }]);
    assert_eq!(content.keeps_billing, [Charge::SnapshotOf { volume: id() }]);
    assert_eq!(
        content.conditions,
        [
            Condition::TagsPermit,
            Condition::TiedToNothing,
            Condition::VolumeIs { volume_type: "gp3".to_owned(), size_gib: 100, created_at: CREATED },
            Condition::UnusedSince { at: SINCE },
            Condition::SnapshotCompleted,
        ]
    );
    let Saving::Known { per_hour, basis, .. } = &content.net_saving else { panic!("{:?}", content.net_saving) };
    assert_eq!(*per_hour, HourlyRate::from_micros(4_000));
    assert!(basis.starts_with("at the least"), "{basis}");
    assert_eq!(plan.valid_until(), NOW + VALID_FOR);
    let action = Action::DeleteVolume;
    assert_eq!(
        action.preparation(&content.resource).unwrap(),
        "aws ec2 create-snapshot --region eu-central-1 --volume-id vol-0123456789abcdef0"
    );
    assert_eq!(
        action.command_line(&content.resource),
        "aws ec2 delete-volume --region eu-central-1 --volume-id vol-0123456789abcdef0"
    );
}

#[test]
fn a_price_that_is_not_known_is_not_zero() {
    let why = || "no row".to_owned();
    let unknown = || Saving::Unknown { why: why() };
    let of = |change: fn(&mut DeleteInput)| plan(&input(change)).unwrap().content().net_saving.clone();
    assert_eq!(of(|input| input.price = Price::Unknown("no row".to_owned())), unknown());
    assert_eq!(of(|input| input.snapshot_at_most = Price::Unknown("no row".to_owned())), unknown());
}

#[test]
fn no_plan_is_made_where_a_guard_stands_before_it_or_nothing_would_be_saved() {
    let refused = |change: fn(&mut VolumeFacts)| plan(&input(|input| change(&mut input.volume))).unwrap_err();
    let guarded = |by| NoPlan::Guarded { by };
    assert_eq!(refused(|facts| facts.tags = None), guarded(Refusal::TagsUnreadable));
    assert_eq!(refused(|facts| facts.on_outpost = true), guarded(Refusal::OnOutpost));
    let unsaid = |fact: &str| guarded(Refusal::FactUnknown { fact: fact.to_owned() });
    assert_eq!(refused(|facts| facts.volume_type = None), unsaid("type"));
    assert_eq!(refused(|facts| facts.size_gib = None), unsaid("size"));
    assert_eq!(refused(|facts| facts.created_at = None), unsaid("creation time"));
    for micros in [11_000, 12_000] {
        let dear = input(|input| input.snapshot_at_most = Price::OnDemand(HourlyRate::from_micros(micros)));
        assert_eq!(plan(&dear).unwrap_err(), NoPlan::SavesNothing, "{micros}");
    }
    let late = plan(&input(|input| input.now = Timestamp::MAX)).unwrap_err();
    assert_eq!(late, NoPlan::ExpiryOutOfRange);
}

#[test]
fn the_same_input_makes_the_same_plan() {
    let kept = serde_json::to_string(&input(|_| ())).unwrap();
    let read: DeleteInput = serde_json::from_str(&kept).unwrap();
    let again = Input::Delete(Box::new(read)).plan().unwrap();
    assert_eq!(again.content_hash(), plan(&input(|_| ())).unwrap().content_hash());
}
