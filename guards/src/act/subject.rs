//! What a plan is about, as it was read right before acting. Refuses a plan whose actions are on something else.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    ResourceKind,
    address::AddressFacts,
    machine::Ec2Facts,
    volume::{SnapshotFacts, VolumeFacts},
};

use super::{Cohort, Dependents, LiveSample, Moment};
use crate::Refusal;

/// What a plan is about, and what is known of such a thing alone.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// A machine, which an agent speaks for.
    Machine(OnMachine<'a>),
    /// A public address, which nobody speaks for but its provider.
    Address(OnAddress<'a>),
    /// A disk, which nobody speaks for but its provider.
    Volume(OnVolume<'a>),
}

/// What is known of a machine right before acting.
#[derive(Clone, Debug)]
pub struct OnMachine<'a> {
    /// What its provider says of it, read for this.
    pub facts: &'a Ec2Facts,
    /// Whether its node has proved which machine it is.
    pub is_attested: bool,
    /// What the node answered when it was asked for this action.
    pub live: Option<&'a LiveSample>,
    /// The rules by which its agent told work from housekeeping when the plan was made.
    pub rules_version: &'a str,
    /// Whether the window that the finding rests on bridges a time without an agent.
    pub bridges_a_gap: bool,
    /// What became of machines like it.
    pub cohort: &'a Cohort,
    /// What else rests on the machine.
    pub dependents: &'a Dependents,
}

/// What is known of a public address right before acting.
#[derive(Clone, Debug)]
pub struct OnAddress<'a> {
    /// What its provider says of it, read for this.
    pub facts: &'a AddressFacts,
    /// Since when every list has shown it unused; none if the last one does not, or nobody knows.
    pub unused_since: Option<Timestamp>,
}

/// What is known of a disk right before acting.
#[derive(Clone, Debug)]
pub struct OnVolume<'a> {
    /// What its provider says of it, read for this.
    pub facts: &'a VolumeFacts,
    /// Since when every list has shown it unused; none if the last one does not, or nobody knows.
    pub unused_since: Option<Timestamp>,
    /// The snapshot that was made for this plan, read for this; none if there is none.
    pub snapshot: Option<&'a SnapshotFacts>,
}

impl Subject<'_> {
    /// Its tags at this moment; none if they could not be read.
    pub(super) fn tags(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Machine(machine) => machine.facts.tags.as_ref(),
            Self::Address(address) => address.facts.tags.as_ref(),
            Self::Volume(volume) => volume.facts.tags.as_ref(),
        }
    }

    fn kind(&self) -> ResourceKind {
        match self {
            Self::Machine(_) => ResourceKind::Instance,
            Self::Address(_) => ResourceKind::Address,
            Self::Volume(_) => ResourceKind::Volume,
        }
    }

    fn id(&self) -> Option<&str> {
        match self {
            Self::Machine(machine) => Some(&machine.facts.instance_id),
            Self::Address(address) => address.facts.allocation_id.as_deref(),
            Self::Volume(volume) => Some(&volume.facts.volume_id),
        }
    }
}

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    let content = moment.plan.content();
    let kind = moment.subject.kind();
    let is_its = content.resource.kind == kind && moment.subject.id() == Some(content.resource.id.as_str());
    let fits = is_its && !content.actions.is_empty() && content.actions.iter().all(|action| action.is_on() == kind);
    if fits { Ok(()) } else { Err(Refusal::OfAnotherKind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        act::{
            may_act,
            sample::{Released, Sample},
        },
        address::sample::facts,
    };
    use model::plan::{Action, PlanContent};

    #[test]
    fn an_address_is_not_released_by_a_yes_to_a_stop_nor_the_other_way_round() {
        let (sample, facts) = (Sample::default(), facts(|_| ()));
        let mut moment = sample.moment();
        moment.subject = Subject::Address(OnAddress { facts: &facts, unused_since: Some(Timestamp::UNIX_EPOCH) });
        assert_eq!(may_act(&moment), Err(Refusal::OfAnotherKind));
    }

    #[test]
    fn what_was_read_is_what_the_plan_names() {
        let other = Sample::with(|sample| sample.machine.instance_id = "i-00000000000000001".to_owned());
        assert_eq!(other, Err(Refusal::OfAnotherKind));
        let other = Released::with(|released| released.facts.allocation_id = Some("eipalloc-1".to_owned()));
        assert_eq!(other, Err(Refusal::OfAnotherKind));
    }

    #[test]
    fn each_action_is_on_what_the_plan_is_about() {
        let of = |actions: &[Action]| {
            Sample::with(|sample| {
                let content = PlanContent { actions: actions.to_vec(), ..sample.plan.content().clone() };
                sample.approved(content);
                // So that nobody is missing who must approve.
                let second = crate::act::Say { approver: "grace".to_owned(), ..sample.says[0].clone() };
                sample.says.push(second);
            })
        };
        assert_eq!(of(&[Action::StopInstance]), Ok(()));
        for actions in [&[][..], &[Action::ReleaseAddress], &[Action::StopInstance, Action::ReleaseAddress]] {
            assert_eq!(of(actions), Err(Refusal::OfAnotherKind), "{actions:?}");
        }
    }
}
