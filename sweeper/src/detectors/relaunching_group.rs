//! A relaunching group: if and only if within a week three machines or more of an Auto Scaling group, of a managed instance group of Google Cloud, or of no group and started from one launch template of EC2, were found idle from within half an hour
//! after their start on and have ended since without any work in between, and the group is still there and may start more.
//!
//! Whoever ends such a machine, by hand or by a schedule, gets the next one: what starts them is to be changed. Groups and templates of AWS Batch, which starts machines for jobs alone, are none. Templates are not listed: one that was deleted stays
//! told until the machines are a week old.

use super::{Answer, Class, Detector, Of};
use crate::snapshot::{GroupInputs, SnapshotPart};

/// Of so many machines it is no accident.
const MACHINES: u32 = 3;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::RelaunchingGroup,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Group(answer),
};

fn answer(inputs: &GroupInputs) -> Answer {
    let refuted = |because: &str| Answer::Refuted { because: because.to_owned() };
    let Some(state) = &inputs.state else { return Answer::NotKnown };
    if state.most == Some(0) {
        return refuted("it may start no machine any more");
    }
    match &state.relaunches {
        Some(ended) if ended.machines >= MACHINES => {
            Answer::Confirmed { since: ended.since, until: inputs.at, work: None }
        }
        // Which of them run again nobody knows then.
        _ if !inputs.failed.is_empty() => Answer::NotKnown,
        _ => refuted("fewer than three of its machines were found idle and have ended within a week"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        detectors::replay,
        snapshot::{Coverage, GroupState, Inputs, Relaunches},
    };
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);

    fn inputs(machines: u32, most: Option<u32>) -> GroupInputs {
        let since = NOW - SignedDuration::from_hours(50);
        let last = NOW - SignedDuration::from_hours(2);
        let relaunches = Some(Relaunches { machines, since, last, idle_s: 9_000, spent: None });
        let state = Some(GroupState { desired: Some(1), most, members: None, relaunches });
        GroupInputs { at: NOW, coverage: Coverage::Complete, state, failed: Vec::new() }
    }

    /// What is said of inputs that went through their kept form.
    fn of(inputs: &GroupInputs) -> Answer {
        let text = serde_json::to_string(inputs).expect("JSON");
        let read: GroupInputs = serde_json::from_str(&text).expect("inputs");
        assert_eq!(read, *inputs);
        replay(Class::RelaunchingGroup, &Inputs::Group(read))
    }

    #[test]
    fn a_relaunching_group_is_one_of_which_three_idle_machines_have_ended() {
        let since = NOW - SignedDuration::from_hours(50);
        for most in [None, Some(1)] {
            assert_eq!(of(&inputs(3, most)), Answer::Confirmed { since, until: NOW, work: None });
        }
        let refuted = |answer: Answer, words: &str| {
            assert!(matches!(&answer, Answer::Refuted { because } if because.contains(words)), "{answer:?}");
        };
        refuted(of(&inputs(2, None)), "fewer than three");
        refuted(of(&inputs(9, Some(0))), "may start no machine");
        let mut none = inputs(3, None);
        none.state.as_mut().expect("a state").relaunches = None;
        refuted(of(&none), "fewer than three");
        none.failed = vec![SnapshotPart::Inventory];
        assert_eq!(of(&none), Answer::NotKnown, "some may have been seen to end before");
        let gone = Answer::Gone { because: "the provider lists the group no more".to_owned() };
        assert_eq!(of(&GroupInputs { state: None, ..inputs(3, None) }), gone);
    }

    proptest! {
        /// What could not be listed is not known, whatever was found before.
        #[test]
        fn nothing_is_said_of_a_group_that_could_not_be_listed(machines in 0_u32..9, most in prop::option::of(0_u32..3)) {
            let all = inputs(machines, most);
            let failed = GroupInputs { failed: vec![SnapshotPart::Inventory], ..all.clone() };
            let is_said = matches!(of(&failed), Answer::Confirmed { .. });
            prop_assert!(!is_said);
            for coverage in [Coverage::Failed, Coverage::NotAsked] {
                prop_assert_eq!(of(&GroupInputs { state: None, coverage, ..all.clone() }), Answer::NotKnown);
            }
        }
    }
}
