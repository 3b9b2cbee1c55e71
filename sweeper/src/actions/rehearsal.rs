//! Whether who acts could, asked by EC2's own dry runs and by what Google says of rights; nothing is changed: for `sweeper doctor`.

use super::{batch, ec2::Called, provider::Acting, sessions::Sessions};
use crate::{
    config::Config,
    inventory::{Failure, Scope},
};
use model::{Provider, ResourceKey, ResourceKind, plan::Action};

/// Whom CloudTrail shows.
const IN_WHOSE_NAME: &str = "sweeper-doctor";

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// The role cannot be assumed, or not with a source identity.
    NotAssumed(Failure),
    /// It can, and there is no machine to try it on.
    NoMachine,
    /// It may stop and start this one, and perhaps others.
    May {
        /// By its id.
        instance: String,
    },
    /// The same, and Auto Scaling hears it, where machines of groups may be ended. Whether it may end any shows in the call alone.
    MayAndIsHeard {
        /// By its id.
        instance: String,
    },
    /// It may stop and start a machine, and Auto Scaling does not hear it, where machines of groups may be ended: why not.
    NotHeard(String),
    /// It may not do so to any that was tried.
    MayNot {
        /// So many were.
        tried: usize,
        /// Why not the last one.
        why: String,
    },
}

/// Assumes the role of this account, and asks of each machine in turn whether it could be stopped and started, until one could.
///
/// A role that may act on machines with a certain tag alone is refused for all others, so that one refusal says little.
pub async fn rehearse(config: &Config, scope: &Scope, instances: &[String]) -> Rehearsal {
    let key = |id: &str| ResourceKey {
        provider: Provider::Aws,
        account: scope.account.clone(),
        location: scope.region.clone(),
        kind: ResourceKind::Instance,
        id: id.to_owned(),
    };
    let sessions = Sessions::new(config);
    let client = match sessions.acting(config, &key(""), &[IN_WHOSE_NAME.to_owned()]).await {
        Ok(client) => client,
        Err(why) => return Rehearsal::NotAssumed(why),
    };
    let keys: Vec<ResourceKey> = instances.iter().map(|id| key(id)).collect();
    try_each(&Acting::Ec2(Box::new(client)), &keys, config.act.end_members).await
}

/// Opens the credentials that act in this project of Google Cloud, and asks of each of these machines in turn whether it could be stopped and started, until one could.
pub async fn rehearse_project(config: &Config, project: &str, machines: &[ResourceKey]) -> Rehearsal {
    let any = ResourceKey {
        provider: Provider::Gcp,
        account: project.to_owned(),
        location: String::new(),
        kind: ResourceKind::Instance,
        id: String::new(),
    };
    match Sessions::new(config).acts(config, &any, &[IN_WHOSE_NAME.to_owned()]).await {
        // No machine is ended there.
        Ok(acts) => try_each(&acts, machines, false).await,
        Err(why) => Rehearsal::NotAssumed(why),
    }
}

/// Whether a role may terminate jobs of AWS Batch, as far as that can be told without doing so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminates {
    /// The role cannot be assumed, or not with a source identity.
    NotAssumed(Failure),
    /// There is no job to try it on.
    NoJob,
    /// It may read the tags of this one, which its policy lets it of those jobs that it may terminate.
    IsHeard {
        /// By its id.
        job: String,
    },
    /// It may not read those of any that was tried.
    MayNot {
        /// So many were.
        tried: usize,
        /// Why not the last one.
        why: String,
    },
}

/// Assumes the role of this account, and asks for the tags of each of these jobs in turn, until it is told some: Batch has no dry run.
pub async fn rehearse_jobs(config: &Config, scope: &Scope, jobs: &[String]) -> Terminates {
    let key = |id: &str| ResourceKey {
        provider: Provider::Aws,
        account: scope.account.clone(),
        location: scope.region.clone(),
        kind: ResourceKind::BatchJob,
        id: id.to_owned(),
    };
    let client = match Sessions::new(config).acting(config, &key(""), &[IN_WHOSE_NAME.to_owned()]).await {
        Ok(client) => client,
        Err(why) => return Terminates::NotAssumed(why),
    };
    let mut refused = None;
    for job in jobs {
        match batch::is_heard(&client, &key(job)).await {
            Called::Accepted { .. } => return Terminates::IsHeard { job: job.clone() },
            Called::Rejected { why, .. } | Called::Lost { why } => refused = Some(why),
            Called::NotSent => {}
        }
    }
    refused.map_or(Terminates::NoJob, |why| Terminates::MayNot { tried: jobs.len(), why })
}

async fn try_each(acts: &Acting, machines: &[ResourceKey], ends_members: bool) -> Rehearsal {
    let mut refused = None;
    for on in machines {
        let asked = match acts.dry_run(Action::StopInstance, on).await {
            Called::Accepted { .. } => acts.dry_run(Action::StartInstance, on).await,
            refused => refused,
        };
        match asked {
            Called::Accepted { .. } if ends_members => {
                return match acts.dry_run(Action::EndMember, on).await {
                    Called::Accepted { .. } => Rehearsal::MayAndIsHeard { instance: on.id.clone() },
                    Called::Rejected { why, .. } | Called::Lost { why } => Rehearsal::NotHeard(why),
                    Called::NotSent => Rehearsal::NotHeard("it was not asked".to_owned()),
                };
            }
            Called::Accepted { .. } => return Rehearsal::May { instance: on.id.clone() },
            Called::Rejected { why, .. } | Called::Lost { why } => refused = Some(why),
            Called::NotSent => {}
        }
    }
    refused.map_or(Rehearsal::NoMachine, |why| Rehearsal::MayNot { tried: machines.len(), why })
}
