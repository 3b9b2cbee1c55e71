//! Every reason not to propose, in the order in which they decide.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    AutoScaling, EXEMPTION_TAG, Ec2Facts, InstanceStore, Lifecycle, Machine, Owner, Protection, Root, Scheduler,
    StopInput, Verdict, membership,
};

/// Why a stop is not proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "not_proposed", rename_all = "snake_case")]
pub enum NotProposed {
    /// Only an idle machine is.
    #[error("the verdict is not idle")]
    NotIdle {
        /// It is this.
        verdict: Verdict,
    },
    /// No provider's API stops it.
    #[error("the machine is on premises: no provider can be asked to stop it")]
    OnPrem,
    /// Its provider's machines are not stopped by this rule.
    #[error("no stop is proposed yet for machines of {provider}")]
    ProviderNotKnown {
        /// What it is called.
        provider: String,
    },
    /// An unread tag may be an exemption.
    #[error("its tags could not be read, and one of them may exempt it")]
    TagsUnreadable,
    /// Someone said never.
    #[error("it is exempt by the tag `{tag}`")]
    Exempt {
        /// The tag's name.
        tag: String,
    },
    /// It is not its own master.
    #[error("it belongs to something larger, {owner}, which decides how many machines it keeps")]
    MemberOf {
        /// What it belongs to.
        owner: Owner,
    },
    /// A group that could not be read may replace it.
    #[error("the Auto Scaling groups could not be read, and one of them may keep it up")]
    GroupsUnreadable,
    /// A scheduler that could not be read may have placed work on it.
    #[error("ECS and AWS Batch could not be read, and one of them may place work on it: {why}")]
    SchedulersUnreadable {
        /// The call and what it was refused with.
        why: String,
    },
    /// Someone said not this one.
    #[error("it is under {by}, which is never switched off to get there")]
    Protected {
        /// Which.
        by: String,
    },
    /// Someone may have said not this one.
    #[error("whether it is protected could not be read (ec2:DescribeInstanceAttribute)")]
    ProtectionUnreadable,
    /// The same, for as long as others are asked about first.
    #[error(
        "whether it is protected is not known yet: other machines were asked about first (ec2:DescribeInstanceAttribute)"
    )]
    ProtectionNotYetKnown,
    /// EC2 left out a fact that the plan depends on.
    #[error("EC2 did not say its {fact}")]
    FactUnknown {
        /// Which.
        fact: String,
    },
    /// There is nothing to stop.
    #[error("its state is `{state}`, not `running`")]
    NotRunning {
        /// In EC2's words.
        state: String,
    },
    /// Only a persistent request survives a stop.
    #[error("it is a Spot instance, and a one-time request cannot be stopped, only ended")]
    Spot,
    /// A stop saves nothing.
    #[error("it is a capacity block, which is paid in advance")]
    CapacityBlock,
    /// A stop saves nothing.
    #[error("it runs in the capacity reservation {id}, which is billed whether or not a machine runs in it")]
    CapacityReserved {
        /// Which.
        id: String,
    },
    /// Bought in a way that this rule does not know.
    #[error("it was bought in a way that this rule does not know: `{lifecycle}`")]
    LifecycleNotKnown {
        /// In EC2's words.
        lifecycle: String,
    },
    /// It cannot be stopped.
    #[error("its root is an instance-store disk: it cannot be stopped, only ended with all its data")]
    InstanceStoreRoot,
    /// A stop may destroy data.
    #[error("it has instance-store disks, whose data would be lost")]
    HasInstanceStore,
    /// The caller's clock is at the end of time.
    #[error("the time is too far in the future for an expiry")]
    ExpiryOutOfRange,
    /// The plan cannot be written down.
    #[error("the plan cannot be sealed: {why}")]
    CannotSeal {
        /// What went wrong.
        why: String,
    },
}

/// What a plan is made from once nothing speaks against it.
pub(super) struct Stoppable<'a> {
    pub(super) facts: &'a Ec2Facts,
    pub(super) instance_type: &'a str,
    pub(super) launched_at: Timestamp,
}

pub(super) fn unless_stoppable(input: &StopInput) -> Result<Stoppable<'_>, NotProposed> {
    if input.verdict != Verdict::Idle {
        return Err(NotProposed::NotIdle { verdict: input.verdict });
    }
    let facts = match &input.machine {
        Machine::OnPrem => return Err(NotProposed::OnPrem),
        Machine::NotKnown(provider) => return Err(NotProposed::ProviderNotKnown { provider: provider.clone() }),
        Machine::Ec2(facts) => facts.as_ref(),
    };
    let tags = facts.tags.as_ref().ok_or(NotProposed::TagsUnreadable)?;
    if tags.get(EXEMPTION_TAG).is_some_and(|value| !value.trim().eq_ignore_ascii_case("false")) {
        return Err(NotProposed::Exempt { tag: EXEMPTION_TAG.to_owned() });
    }
    let group = match &facts.autoscaling {
        AutoScaling::Member(name) => Some(name.as_str()),
        AutoScaling::NotListed | AutoScaling::Unknown => None,
    };
    let scheduler = match &facts.scheduler {
        Scheduler::Has(owner) => Some(owner),
        Scheduler::NotListed | Scheduler::Unknown { .. } => None,
    };
    if let Some(owner) = membership::owner(tags, scheduler, group, facts.operator.as_deref()) {
        return Err(NotProposed::MemberOf { owner });
    }
    if facts.autoscaling == AutoScaling::Unknown {
        return Err(NotProposed::GroupsUnreadable);
    }
    if let Scheduler::Unknown { why } = &facts.scheduler {
        return Err(NotProposed::SchedulersUnreadable { why: why.clone() });
    }
    match &facts.protection {
        Protection::Off => {}
        Protection::On { by } => return Err(NotProposed::Protected { by: by.clone() }),
        Protection::Unknown => return Err(NotProposed::ProtectionUnreadable),
        Protection::NotYet => return Err(NotProposed::ProtectionNotYetKnown),
    }
    let missing = |fact: &str| NotProposed::FactUnknown { fact: fact.to_owned() };
    match facts.state.as_deref() {
        None => return Err(missing("state")),
        Some("running") => {}
        Some(state) => return Err(NotProposed::NotRunning { state: state.to_owned() }),
    }
    match &facts.lifecycle {
        Lifecycle::OnDemand => {}
        Lifecycle::Spot => return Err(NotProposed::Spot),
        Lifecycle::CapacityBlock => return Err(NotProposed::CapacityBlock),
        Lifecycle::Other(lifecycle) => return Err(NotProposed::LifecycleNotKnown { lifecycle: lifecycle.clone() }),
    }
    if let Some(id) = &facts.capacity_reservation {
        return Err(NotProposed::CapacityReserved { id: id.clone() });
    }
    match facts.root {
        Root::Ebs => {}
        Root::InstanceStore => return Err(NotProposed::InstanceStoreRoot),
        Root::Unknown => return Err(missing("root device type")),
    }
    if facts.instance_store == InstanceStore::Present {
        return Err(NotProposed::HasInstanceStore);
    }
    Ok(Stoppable {
        facts,
        instance_type: facts.instance_type.as_deref().ok_or_else(|| missing("instance type"))?,
        launched_at: facts.launched_at.ok_or_else(|| missing("launch time"))?,
    })
}
