//! An idle group: if and only if an Auto Scaling group, or a managed instance group of Google Cloud, keeps machines up by its provider's word, it is known which these are, and the verdict on each
//! of them that runs is `idle`.
//!
//! Whoever ends one of them gets another: the group itself is to be made smaller. AWS Batch changes its groups by itself, and they are none. One machine that works refutes it.

use super::{Answer, Class, Detector, Of};
use crate::snapshot::{Coverage, GroupInputs, SnapshotPart};

pub(super) const DETECTOR: Detector =
    Detector { class: Class::IdleGroup, version: 1, rests_on: &[SnapshotPart::Inventory], answer: Of::Group(answer) };

/// What refutes every class of groups; none if nothing of where it is listed does.
pub(super) fn refutes(inputs: &GroupInputs) -> Option<Answer> {
    match (&inputs.state, inputs.coverage) {
        (None, Coverage::Complete) => Some(Answer::Gone { because: "the provider lists the group no more".to_owned() }),
        (None, Coverage::Failed | Coverage::NotAsked) => Some(Answer::NotKnown),
        (Some(_), _) => None,
    }
}

fn answer(inputs: &GroupInputs) -> Answer {
    let refuted = |because: String| Answer::Refuted { because };
    let Some(state) = &inputs.state else { return Answer::NotKnown };
    if state.desired == Some(0) {
        return refuted("it keeps no machine up".to_owned());
    }
    let (Some(_), Some(members)) = (state.desired, &state.members) else { return Answer::NotKnown };
    if let Some(active) = &members.active {
        return refuted(format!("{active} of it works"));
    }
    if members.are_batchs {
        return refuted("AWS Batch changes it by itself".to_owned());
    }
    match (members.since, members.until) {
        (Some(since), Some(until)) if members.count > 0 && members.idle == members.count && since < until => {
            Answer::Confirmed { since, until, work: None }
        }
        _ => Answer::NotKnown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        detectors::replay,
        snapshot::{GroupState, Inputs, Members},
    };
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);

    fn inputs() -> GroupInputs {
        let since = Some(NOW - SignedDuration::from_mins(40));
        let members = Members { count: 3, idle: 3, active: None, are_batchs: false, since, until: Some(NOW) };
        let state = Some(GroupState { desired: Some(3), most: Some(4), members: Some(members), relaunches: None });
        GroupInputs { at: NOW, coverage: Coverage::Complete, state, failed: Vec::new() }
    }

    /// What is said of inputs that went through their kept form.
    fn of(change: impl Fn(&mut GroupInputs)) -> Answer {
        let mut inputs = inputs();
        change(&mut inputs);
        let text = serde_json::to_string(&inputs).expect("JSON");
        let read: GroupInputs = serde_json::from_str(&text).expect("inputs");
        assert_eq!(read, inputs);
        replay(Class::IdleGroup, &Inputs::Group(read))
    }

    fn of_members(change: impl Fn(&mut Members)) -> Answer {
        of(|inputs| change(inputs.state.as_mut().and_then(|state| state.members.as_mut()).expect("members")))
    }

    #[test]
    fn an_idle_group_is_one_that_keeps_machines_up_of_which_each_is_idle() {
        let since = NOW - SignedDuration::from_mins(40);
        assert_eq!(of(|_| {}), Answer::Confirmed { since, until: NOW, work: None });
        assert_eq!(of_members(|members| members.idle = 2), Answer::NotKnown, "one waits, or is not known");
        assert_eq!(of_members(|members| (members.count, members.idle) = (0, 0)), Answer::NotKnown, "none runs");
        assert_eq!(of_members(|members| members.since = members.until), Answer::NotKnown, "never all at once");
        let works = of_members(|members| (members.idle, members.active) = (2, Some("i-2".to_owned())));
        assert_eq!(works, Answer::Refuted { because: "i-2 of it works".to_owned() });
        let batchs = of_members(|members| members.are_batchs = true);
        assert_eq!(batchs, Answer::Refuted { because: "AWS Batch changes it by itself".to_owned() });
    }

    #[test]
    fn what_a_provider_does_not_say_is_not_known() {
        let state = |change: fn(&mut GroupState)| of(|inputs| change(inputs.state.as_mut().expect("a state")));
        assert_eq!(state(|state| state.members = None), Answer::NotKnown);
        assert_eq!(state(|state| state.desired = None), Answer::NotKnown);
        let none = Answer::Refuted { because: "it keeps no machine up".to_owned() };
        assert_eq!(state(|state| state.desired = Some(0)), none);
        assert_eq!(of(|inputs| inputs.failed = vec![SnapshotPart::Inventory]), Answer::NotKnown);
        let gone = Answer::Gone { because: "the provider lists the group no more".to_owned() };
        assert_eq!(of(|inputs| inputs.state = None), gone);
        for coverage in [Coverage::Failed, Coverage::NotAsked] {
            assert_eq!(of(|inputs| (inputs.state, inputs.coverage) = (None, coverage)), Answer::NotKnown);
        }
    }

    prop_compose! {
        fn any_inputs()(
            desired in prop::option::of(0_u32..3), count in 0_u32..4, idle in 0_u32..4, has_members: bool, works: bool, are_batchs: bool,
            since in prop::option::of(0_i64..3), until in prop::option::of(0_i64..3), coverage in 0_usize..3, is_listed: bool, is_unread: bool,
        ) -> GroupInputs {
            let time = |minutes: i64| NOW + SignedDuration::from_mins(minutes);
            let active = works.then(|| "i-1".to_owned());
            let members = Members {
                count, idle: idle.min(count), active, are_batchs, since: since.map(time), until: until.map(time),
            };
            GroupInputs {
                at: NOW,
                coverage: [Coverage::Complete, Coverage::Failed, Coverage::NotAsked][coverage],
                state: is_listed.then(|| GroupState {
                    desired,
                    most: None,
                    members: has_members.then_some(members),
                    relaunches: None,
                }),
                failed: if is_unread { vec![SnapshotPart::Inventory] } else { Vec::new() },
            }
        }
    }

    proptest! {
        /// The sentence at the top of this file, and that neither more work nor less evidence makes a group idle.
        #[test]
        fn a_group_is_idle_by_the_sentence_and_by_nothing_else(inputs in any_inputs()) {
            let of = |inputs: &GroupInputs| replay(Class::IdleGroup, &Inputs::Group(inputs.clone()));
            let is_idle = |inputs: &GroupInputs| matches!(of(inputs), Answer::Confirmed { .. });
            let keeps = inputs.state.as_ref().filter(|state| state.desired.is_some_and(|desired| desired > 0));
            let idle = keeps.and_then(|state| state.members.as_ref()).filter(|members| {
                members.count > 0 && members.idle == members.count && members.active.is_none() && !members.are_batchs
            });
            let at_once = idle.and_then(|members| Some(members.since? < members.until?));
            prop_assert_eq!(is_idle(&inputs), at_once == Some(true) && inputs.failed.is_empty());
            let mut works = inputs.clone();
            if let Some(members) = works.state.as_mut().and_then(|state| state.members.as_mut()) {
                members.active = Some("i-2".to_owned());
                prop_assert!(!is_idle(&works));
            }
            let less = [
                GroupInputs { state: None, ..inputs.clone() },
                GroupInputs { failed: vec![SnapshotPart::Inventory], ..inputs },
            ];
            prop_assert!(less.iter().all(|inputs| !is_idle(inputs)));
        }
    }
}
