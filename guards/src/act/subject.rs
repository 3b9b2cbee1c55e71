//! What a plan is about, as it was read right before acting. Refuses a plan whose actions are on something else.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    Provider, ResourceKey, ResourceKind,
    address::AddressFacts,
    group::GroupFacts,
    job::JobFacts,
    machine::{ComputeEngineFacts, Ec2Facts},
    plan::Action,
    volume::{SnapshotFacts, VolumeFacts},
};
use serde::Serialize;

use super::{Cohort, Dependents, LiveSample, Moment, StuckJobs};
use crate::Refusal;

/// What a plan is about, and what is known of such a thing alone.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// A machine, which an agent speaks for.
    Machine(OnMachine<'a>),
    /// A machine of a group, which is to be ended in it.
    Member(OnMember<'a>),
    /// A public address, which nobody speaks for but its provider.
    Address(OnAddress<'a>),
    /// A disk, which nobody speaks for but its provider.
    Volume(OnVolume<'a>),
    /// A job, which the agent on its machine speaks for.
    Job(OnJob<'a>),
}

/// What its provider says of a machine.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum MachineFacts<'a> {
    /// Of EC2.
    Ec2(&'a Ec2Facts),
    /// Of Google Cloud.
    ComputeEngine(&'a ComputeEngineFacts),
}

impl<'a> MachineFacts<'a> {
    fn tags(self) -> Option<&'a BTreeMap<String, String>> {
        match self {
            Self::Ec2(facts) => facts.tags.as_ref(),
            Self::ComputeEngine(facts) => facts.labels.as_ref(),
        }
    }

    /// The resource that it is about, by what it says itself.
    fn is_of(self, resource: &ResourceKey) -> bool {
        let (provider, at) = match self {
            Self::Ec2(facts) => (Provider::Aws, [&facts.account, &facts.region, &facts.instance_id]),
            Self::ComputeEngine(facts) => (Provider::Gcp, [&facts.project, &facts.zone, &facts.number]),
        };
        provider == resource.provider && at == [&resource.account, &resource.location, &resource.id]
    }
}

/// What is known of a machine right before acting.
#[derive(Clone, Debug)]
pub struct OnMachine<'a> {
    /// What its provider says of it, read for this.
    pub facts: MachineFacts<'a>,
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

/// What is known of a machine of a group right before acting.
#[derive(Clone, Debug)]
pub struct OnMember<'a> {
    /// The machine itself.
    pub machine: OnMachine<'a>,
    /// What Auto Scaling says of its group, read for this.
    pub group: &'a GroupFacts,
    /// Another machine of the group that is being ended by another plan, or has just been.
    pub ending: Option<&'a ResourceKey>,
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

/// What is known of a job right before acting.
#[derive(Clone, Debug)]
pub struct OnJob<'a> {
    /// Since when nothing of it has run, as its finding has it now; none if the finding has ended.
    pub since: Option<Timestamp>,
    /// What Batch, ECS and EC2 say of it, read for this.
    pub facts: &'a JobFacts,
    /// What became of the other jobs of its account and region.
    pub cohort: &'a StuckJobs,
    /// Whether the node on its machine has proved which machine it is.
    pub is_attested: bool,
    /// What that node answered when it was asked for this action.
    pub live: Option<&'a LiveSample>,
}

impl Subject<'_> {
    /// Its tags at this moment; none if they could not be read.
    pub(super) fn tags(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Machine(machine) | Self::Member(OnMember { machine, .. }) => machine.facts.tags(),
            Self::Address(address) => address.facts.tags.as_ref(),
            Self::Volume(volume) => volume.facts.tags.as_ref(),
            Self::Job(job) => job.facts.tags.as_ref(),
        }
    }

    fn kind(&self) -> ResourceKind {
        match self {
            Self::Machine(_) | Self::Member(_) => ResourceKind::Instance,
            Self::Address(_) => ResourceKind::Address,
            Self::Volume(_) => ResourceKind::Volume,
            Self::Job(_) => ResourceKind::BatchJob,
        }
    }

    fn is_of(&self, resource: &ResourceKey) -> bool {
        match self {
            Self::Machine(machine) | Self::Member(OnMember { machine, .. }) => machine.facts.is_of(resource),
            Self::Address(address) => address.facts.allocation_id.as_ref() == Some(&resource.id),
            Self::Volume(volume) => volume.facts.volume_id == resource.id,
            Self::Job(OnJob { facts, .. }) => {
                [&facts.account, &facts.region, &facts.job_id] == [&resource.account, &resource.location, &resource.id]
                    && resource.provider == Provider::Aws
            }
        }
    }

    /// Whether what is known of it is what has to be known before this is done to it: of a machine that is ended in its group more than of one that is stopped.
    fn takes(&self, action: Action) -> bool {
        match self {
            Self::Member(_) => action == Action::EndMember,
            _ => action != Action::EndMember && action.is_on() == self.kind(),
        }
    }
}

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    let content = moment.plan.content();
    let kind = moment.subject.kind();
    let is_its = content.resource.kind == kind && moment.subject.is_of(&content.resource);
    let takes = |action: &Action| moment.subject.takes(*action);
    let fits = is_its && !content.actions.is_empty() && content.actions.iter().all(takes);
    if fits { Ok(()) } else { Err(Refusal::OfAnotherKind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        act::{
            may_act,
            sample::{Ended, OfGoogle, Released, Sample},
        },
        address::sample::facts,
    };
    use model::plan::PlanContent;

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
        let moved = Sample::with(|sample| sample.machine.region = "eu-west-1".to_owned());
        assert_eq!(moved, Err(Refusal::OfAnotherKind));
        for change in [
            (|facts: &mut ComputeEngineFacts| facts.number = "1001".to_owned()) as fn(&mut ComputeEngineFacts),
            |facts| facts.project = "omics-dev-1".to_owned(),
            |facts| facts.zone = "europe-west3-b".to_owned(),
        ] {
            assert_eq!(OfGoogle::with(|one| change(&mut one.facts)), Err(Refusal::OfAnotherKind));
        }
        let other = Released::with(|released| released.facts.allocation_id = Some("eipalloc-1".to_owned()));
        assert_eq!(other, Err(Refusal::OfAnotherKind));
    }

    #[test]
    fn a_machine_of_one_provider_is_not_stopped_by_a_yes_to_one_of_the_other() {
        let (sample, facts) = (Sample::default(), crate::compute_engine::sample::facts(|_| ()));
        let mut moment = sample.moment();
        if let Subject::Machine(machine) = &mut moment.subject {
            machine.facts = MachineFacts::ComputeEngine(&facts);
        }
        assert_eq!(may_act(&moment), Err(Refusal::OfAnotherKind));
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
        let both = [Action::StopInstance, Action::ReleaseAddress];
        for actions in [&[][..], &[Action::ReleaseAddress], &both, &[Action::EndMember]] {
            assert_eq!(of(actions), Err(Refusal::OfAnotherKind), "{actions:?}");
        }
    }

    #[test]
    fn what_is_ended_in_its_group_is_asked_about_with_its_group() {
        let of = |action: Action| {
            Ended::with(|ended| {
                let content = PlanContent { actions: vec![action], ..ended.sample.plan.content().clone() };
                ended.sample.approved(content);
            })
        };
        assert_eq!(of(Action::EndMember), Ok(()));
        assert_eq!(of(Action::StopInstance), Err(Refusal::OfAnotherKind));
    }
}
