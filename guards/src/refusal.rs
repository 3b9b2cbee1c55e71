//! Every reason not to touch a machine.

use jiff::Timestamp;
use model::machine::Owner;
use serde::{Deserialize, Serialize};

use crate::{JobRefusal, MemberRefusal};

/// Why a machine is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// An unread tag may be an exemption.
    #[error("its tags could not be read, and one of them may exempt it")]
    TagsUnreadable,
    /// Someone said never.
    #[error("it is exempt by the tag `{tag}`")]
    Exempt {
        /// The tag's name.
        tag: String,
    },
    /// Somebody said never.
    #[error("{by} wants it left alone for good")]
    ExemptedBy {
        /// Who.
        by: String,
    },
    /// Somebody said not now.
    #[error("{by} wants it left alone until {until}")]
    SnoozedBy {
        /// Who.
        by: String,
        /// Until then.
        until: Timestamp,
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
    /// Google may not have it again.
    #[error("it is a Spot or preemptible machine, which Google takes back at will and may not start again")]
    Preemptible,
    /// A stop changes when.
    #[error("it ends by itself: {what}")]
    EndsByItself {
        /// In Google's words.
        what: String,
    },
    /// A stop saves nothing.
    #[error("it lies on a host of its own (a sole-tenant node), which is billed whether or not a machine runs on it")]
    OnOwnHost,
    /// A stop may destroy data.
    #[error("it has disks of its host (local SSDs), whose data would be lost")]
    HasLocalSsd,
    /// Nothing would undo a stop.
    #[error("a disk of it is encrypted by a key that Google does not keep: only who has it starts the machine again")]
    NeedsKey,
    /// Something else may start and stop it.
    #[error("it has the resource policy {policy}, which may be a schedule that starts it again")]
    HasResourcePolicy {
        /// Its name.
        policy: String,
    },
    /// A stop saves nothing.
    #[error("it is a capacity block, which is paid in advance")]
    CapacityBlock,
    /// A stop saves nothing.
    #[error("it runs in the capacity reservation {id}, which is billed whether or not a machine runs in it")]
    CapacityReserved {
        /// Which.
        id: String,
    },
    /// Bought in a way that nothing here knows.
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
    /// Somebody has done something with it since the plan was made.
    #[error("its state was `{was}` when the plan was made, and is `{is}`")]
    StateChanged {
        /// In EC2's words.
        was: String,
        /// In EC2's words.
        is: String,
    },
    /// It has been started again: what runs on it is something else.
    #[error("it was started at {was} when the plan was made, and again at {is}")]
    StartedAgain {
        /// Then.
        was: Timestamp,
        /// Now.
        is: Timestamp,
    },
    /// It is another machine by now: somebody has changed it.
    #[error("it was a {was} when the plan was made, and is a {is}")]
    TypeChanged {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// Somebody has switched acting off.
    #[error("the kill switch is on: nothing is carried out")]
    SwitchedOff,
    /// Then it counts as on.
    #[error("the kill switch could not be read, which counts as on")]
    SwitchUnreadable,
    /// That is the default.
    #[error("acting is not switched on for this account and region: a dry run is all that is done")]
    DryRunOnly,
    /// What happened since the backup is not in it.
    #[error(
        "since it was approved the database was restored from a backup, or no sweeper served for ten minutes so that it may have been: approve it again"
    )]
    Restored,
    /// The finding has ended, or has another plan by now.
    #[error("the plan is not its finding's any more")]
    PlanWithdrawn,
    /// It was idle when it was last known, which is not now.
    #[error("the last sweep could not confirm the finding")]
    NotConfirmed,
    /// It is too late.
    #[error("the plan was valid until {at}")]
    PlanExpired {
        /// When it ended.
        at: Timestamp,
    },
    /// One no is enough.
    #[error("{by} has said no to it")]
    Denied {
        /// Who.
        by: String,
    },
    /// The policy has changed since.
    #[error("no rule of the policy is about this plan")]
    NoRule,
    /// Not enough people have said yes.
    #[error("{given} of {needs} people have approved it")]
    NotApproved {
        /// So many have, who are still enrolled.
        given: u32,
        /// So many must.
        needs: u32,
    },
    /// It would end what carries it out.
    #[error("the sweeper itself needs this machine, or whether it does cannot be told")]
    Own,
    /// It may be any machine.
    #[error("its node has not proved which machine it is (docs/operations.md, who speaks for a machine)")]
    NotAttested,
    /// Somebody else has it now.
    #[error("its owner was {} when it was found, and is {} now", nobody(was), nobody(is))]
    OwnerChanged {
        /// Then; none if there was none, or that is not known.
        was: Option<String>,
        /// Now.
        is: Option<String>,
    },
    /// Others rest on it.
    #[error("others rest on it: {what}")]
    DependedUpon {
        /// What, in words.
        what: String,
    },
    /// Others may.
    #[error("what rests on it could not be read: {why}")]
    DependentsUnreadable {
        /// The call and what it was refused with.
        why: String,
    },
    /// Nobody saw what it did then.
    #[error("its agent was away for a part of the time that the finding rests on")]
    BridgedGap,
    /// Other rules tell work from housekeeping.
    #[error("the rules by which work is told from housekeeping have changed since")]
    RulesChanged,
    /// Somebody was wrong before.
    #[error(
        "an action of this class in this account was undone, or its machine was started again: a person must look first"
    )]
    Relapsed,
    /// Enough for a day.
    #[error("{done} actions were carried out in this account within 24 hours, and {most} is the most")]
    Capped {
        /// So many.
        done: u32,
        /// So many are let through.
        most: u32,
    },
    /// A broken sensor, not luck.
    #[error(
        "{turned_idle} of {machines} machines with this agent and these rules turned idle within a day: that is a broken sensor, not luck"
    )]
    CohortTurnedIdle {
        /// So many turned idle.
        turned_idle: u32,
        /// Of so many.
        machines: u32,
    },
    /// Nobody asked it.
    #[error("its node has not answered")]
    NoLiveSample,
    /// It answered something else.
    #[error("its node answered another question")]
    LiveSampleOfAnother,
    /// It was started again.
    #[error("it has booted again since")]
    BootChanged,
    /// Somebody works there.
    #[error("it is not idle any more: {why}")]
    NotIdle {
        /// In words.
        why: String,
    },
    /// There is nothing to undo.
    #[error("it was not carried out, so that there is nothing to undo")]
    NotDone,
    /// There is nothing to start.
    #[error("its state is `{state}`, not `stopped`")]
    NotStopped {
        /// In EC2's words.
        state: String,
    },
    /// It is about something else than it says.
    #[error("the plan is about another kind of resource than it is on")]
    OfAnotherKind,
    /// Somebody uses it.
    #[error("it is tied to {what}")]
    TiedTo {
        /// In the provider's words.
        what: String,
    },
    /// Only that service may give it back.
    #[error("the service {by} keeps it for itself")]
    KeptByService {
        /// In the provider's words.
        by: String,
    },
    /// It would be made anew, or missed.
    #[error("something else manages it, as its tag `{tag}` says")]
    ManagedElsewhere {
        /// The tag's name.
        tag: String,
    },
    /// It is the customer's own, which AWS does not bill.
    #[error("it is out of `{pool}`, and not one of Amazon's own addresses for a whole region")]
    OfAnotherPool {
        /// In EC2's words.
        pool: String,
    },
    /// It is another one by now.
    #[error("it was the address {was} when the plan was made, and is {is}")]
    AddressChanged {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// Somebody sends mail with it.
    #[error("the name {name} leads back from it: mail may be sent with it")]
    HasReverseName {
        /// Which.
        name: String,
    },
    /// It is about to be somebody else's.
    #[error("it has been offered to the account {to}")]
    Offered {
        /// Which.
        to: String,
    },
    /// It may be used.
    #[error("{what} is not known: {why}")]
    NotTold {
        /// What.
        what: String,
        /// Why not.
        why: String,
    },
    /// Somebody has used it in between.
    #[error("the lists do not show it unused since {since}, as the plan has it")]
    UsedInBetween {
        /// Since then it was to be unused.
        since: Timestamp,
    },
    /// It is being made, used or deleted.
    #[error("its state is `{state}`, not `available`")]
    NotReady {
        /// In EC2's words.
        state: String,
    },
    /// It is not billed by its size.
    #[error("it is on an Outpost")]
    OnOutpost,
    /// Somebody has changed it.
    #[error("it was {was} when the plan was made, and is {is}")]
    VolumeChanged {
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// There is no copy of what it holds.
    #[error("there is no snapshot of it for this plan")]
    NoSnapshot,
    /// The copy is of something else.
    #[error("the snapshot is of another volume, or for another plan")]
    SnapshotOfAnother,
    /// The copy is not all of it.
    #[error("its snapshot is `{}`, not `completed`", state.as_deref().unwrap_or("in a state that EC2 does not tell"))]
    SnapshotNotWhole {
        /// In EC2's words; none if EC2 did not say.
        state: Option<String>,
    },
    /// What was written since is not in it.
    #[error("its snapshot was not begun after the plan was approved")]
    SnapshotOfBefore,
    /// What speaks for a member of a group.
    #[error(transparent)]
    Member(#[from] MemberRefusal),
    /// What speaks for a job.
    #[error(transparent)]
    Job(#[from] JobRefusal),
    /// Too long ago, or of the future.
    #[error("its node's answer is older than 5 s")]
    LiveSampleStale,
}

fn nobody(owner: &Option<String>) -> &str {
    owner.as_deref().unwrap_or("nobody")
}

/// A fact that a guard needs and EC2 did not tell.
pub(crate) fn missing(fact: &str) -> Refusal {
    Refusal::FactUnknown { fact: fact.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_hands_is_told_by_names() {
        let [was, is] = [Some("ada".to_owned()), None];
        let told = Refusal::OwnerChanged { was, is }.to_string();
        assert_eq!(told, "its owner was ada when it was found, and is nobody now");
    }
}
