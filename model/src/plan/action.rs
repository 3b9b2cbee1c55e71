//! What can be done to a resource.

use serde::{Deserialize, Serialize};

use crate::{Provider, ResourceKey, ResourceKind};

/// One thing that is done to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stop a machine, as its own system stops: never by force. Its disks stay. Of Google Cloud it is `instances.stop`.
    StopInstance,
    /// Stop a machine that was set up for it so that what is in memory comes back with its start. Where that fails EC2 stops it as its own system stops, and
    /// never by force: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StopInstances.html>.
    HibernateInstance,
    /// Start a stopped machine.
    StartInstance,
    /// Give a public address back that is tied to nothing. EC2 may give it to anybody from then on; that it comes back by `AllocateAddress` is luck, so that nothing undoes it:
    /// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ReleaseAddress.html>.
    ReleaseAddress,
    /// Delete a volume that is attached to nothing, once a snapshot of it that was begun for this plan is whole. A volume that is made of the snapshot is another one, so that nothing
    /// undoes it: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteVolume.html>.
    DeleteVolume,
    /// End a machine that an Auto Scaling group keeps up, and have the group keep up one fewer, so that it starts no other in its place. Nothing undoes it: what the group starts later is another
    /// machine. <https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html>.
    EndMember,
    /// End a job of AWS Batch that runs, for good. Batch sends its container `SIGTERM`, and kills it after a while; a job that was terminated is not tried again, whatever its retry strategy says
    /// (<https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html>). Nothing undoes it:
    /// <https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJob.html>.
    TerminateJob,
}

/// What an action takes from whoever is wrong about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionClass {
    /// Another action takes it back.
    Reversible,
    /// Nothing brings back what it ends or deletes: it needs a second approver.
    Destructive,
}

impl ActionClass {
    /// So many different people must approve, whatever a policy says.
    #[must_use]
    pub const fn least_approvers(self) -> u32 {
        match self {
            Self::Reversible => 1,
            Self::Destructive => 2,
        }
    }
}

impl Action {
    /// What it takes from whoever is wrong about it.
    #[must_use]
    pub const fn class(self) -> ActionClass {
        match self {
            Self::StopInstance | Self::HibernateInstance | Self::StartInstance => ActionClass::Reversible,
            Self::ReleaseAddress | Self::DeleteVolume | Self::EndMember | Self::TerminateJob => {
                ActionClass::Destructive
            }
        }
    }

    /// What it can be done to.
    #[must_use]
    pub const fn is_on(self) -> ResourceKind {
        match self {
            Self::StopInstance | Self::HibernateInstance | Self::StartInstance | Self::EndMember => {
                ResourceKind::Instance
            }
            Self::ReleaseAddress => ResourceKind::Address,
            Self::DeleteVolume => ResourceKind::Volume,
            Self::TerminateJob => ResourceKind::BatchJob,
        }
    }

    /// The state in which it has ended, and how many seconds that may take. EC2 takes several minutes to stop a machine whose system is slow to
    /// shut down, and one that hibernates writes up to 150 GB to its disk first. What a group has to do before it ends a member may take an hour or two (its lifecycle hooks). An address is *released*, and a volume *deleted*, once EC2 lists it no more; a job is *terminated* once Batch says that it
    /// has failed for the reason that the call gave.
    #[must_use]
    pub const fn ends_in(self) -> (&'static str, u32) {
        match self {
            Self::StopInstance => ("stopped", 900),
            Self::HibernateInstance => ("stopped", 3600),
            Self::StartInstance => ("running", 600),
            Self::ReleaseAddress => ("released", 300),
            Self::DeleteVolume => ("deleted", 900),
            Self::EndMember => ("terminated", 7200),
            Self::TerminateJob => ("terminated", 900),
        }
    }

    /// The provider's name for the call: `StopInstances`.
    #[must_use]
    pub const fn call(self) -> &'static str {
        match self {
            Self::StopInstance | Self::HibernateInstance => "StopInstances",
            Self::StartInstance => "StartInstances",
            Self::ReleaseAddress => "ReleaseAddress",
            Self::DeleteVolume => "DeleteVolume",
            Self::EndMember => "TerminateInstanceInAutoScalingGroup",
            Self::TerminateJob => "TerminateJob",
        }
    }

    /// What is done before, for the provider's own command line; nothing for most.
    #[must_use]
    pub fn preparation(self, on: &ResourceKey) -> Option<String> {
        match self {
            Self::StopInstance
            | Self::HibernateInstance
            | Self::StartInstance
            | Self::ReleaseAddress
            | Self::EndMember
            | Self::TerminateJob => None,
            Self::DeleteVolume => {
                Some(format!("aws ec2 create-snapshot --region {} --volume-id {}", on.location, on.id))
            }
        }
    }

    /// Whether its call can be asked by itself whether it would be made (`--dry-run`). Auto Scaling and Batch have no such question.
    #[must_use]
    pub const fn has_dry_run(self) -> bool {
        !matches!(self, Self::EndMember | Self::TerminateJob)
    }

    /// The same call for the provider's own command line, so that a person can check it or make it by hand. Neither `--force` nor `--skip-os-shutdown` is
    /// ever in it.
    #[must_use]
    pub fn command_line(self, on: &ResourceKey) -> String {
        if on.provider == Provider::Gcp {
            return self.gcloud(on);
        }
        let (verb, named_by, how) = match self {
            Self::StopInstance => ("ec2 stop-instances", "instance-ids", ""),
            Self::HibernateInstance => ("ec2 stop-instances", "instance-ids", " --hibernate"),
            Self::StartInstance => ("ec2 start-instances", "instance-ids", ""),
            Self::ReleaseAddress => ("ec2 release-address", "allocation-id", ""),
            Self::DeleteVolume => ("ec2 delete-volume", "volume-id", ""),
            Self::EndMember => (
                "autoscaling terminate-instance-in-auto-scaling-group",
                "instance-id",
                " --should-decrement-desired-capacity",
            ),
            Self::TerminateJob => ("batch terminate-job", "job-id", " --reason REASON"),
        };
        format!("aws {verb} --region {} --{named_by} {}{how}", on.location, on.id)
    }

    /// For Google's command line, which takes a machine's number as well as its name. Of the rest there is none: nothing else is planned there.
    fn gcloud(self, on: &ResourceKey) -> String {
        let verb = match self {
            Self::StopInstance => "stop",
            Self::StartInstance => "start",
            Self::HibernateInstance
            | Self::EndMember
            | Self::ReleaseAddress
            | Self::DeleteVolume
            | Self::TerminateJob => {
                return format!("nothing of Google Cloud's does it to {on}");
            }
        };
        format!("gcloud compute instances {verb} {} --project {} --zone {}", on.id, on.account, on.location)
    }
}
