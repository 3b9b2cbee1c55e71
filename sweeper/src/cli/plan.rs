//! A plan in words.

use super::screen::plain;
use crate::verdict::words;
use model::{
    ResourceKey,
    plan::{Action, Condition, Loss, PlanContent, Saving},
};

/// What is done, a line each: first everything is looked at again, and the provider is asked whether it would.
pub(super) fn steps(plan: &PlanContent) -> Vec<String> {
    let conditions = plan.conditions.iter().map(|one| format!("\n       - {}", condition(one)));
    let look = format!("look again, and go on only if{}", conditions.collect::<String>());
    let ask = |action: &Action| format!("{} --dry-run", command(*action, &plan.resource));
    let asks = plan.actions.iter().filter(|action| action.has_dry_run()).map(ask);
    let before = plan.actions.iter().filter_map(|action| action.preparation(&plan.resource));
    let before = before.flat_map(|command| [plain(&command), "wait for it to be completed, and look again".to_owned()]);
    std::iter::once(look).chain(asks).chain(before).chain(done(&plan.actions, &plan.resource)).collect()
}

/// What takes it back, or that nothing does.
pub(super) fn reversal(plan: &PlanContent) -> Vec<String> {
    if plan.reversal.is_empty() {
        return vec!["nothing: it is for good, so that two different people must approve it".to_owned()];
    }
    done(&plan.reversal, &plan.resource).collect()
}

fn done<'a>(actions: &'a [Action], on: &'a ResourceKey) -> impl Iterator<Item = String> + 'a {
    actions.iter().flat_map(move |action| {
        let (state, seconds) = action.ends_in();
        [command(*action, on), format!("wait up to {seconds} s for it to be {state}")]
    })
}

fn command(action: Action, on: &ResourceKey) -> String {
    plain(&action.command_line(on))
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::StateIs { state } => format!("it is {state}"),
        Condition::LaunchedAtIs { at } => format!("it was last started at {}", words::time(at.as_millisecond())),
        Condition::InstanceTypeIs { instance_type } => format!("it is a {}", plain(instance_type)),
        Condition::TagsPermit => "its tags can be read and permit it".to_owned(),
        Condition::StillIdle => "a live look at the node still says idle".to_owned(),
        Condition::NotProtected => "it has neither stop nor termination protection".to_owned(),
        Condition::AddressIs { address } => format!("its allocation still is of {}", plain(address)),
        Condition::TiedToNothing => "it is tied to nothing, and no service keeps it".to_owned(),
        Condition::UnusedSince { at } => {
            format!("every list since {} has shown it tied to nothing", words::time(at.as_millisecond()))
        }
        Condition::NoReverseName => "no name is set that leads back from it (reverse DNS)".to_owned(),
        Condition::VolumeIs { volume_type, size_gib, created_at } => format!(
            "it is of {size_gib} GiB and of type {}, made at {}",
            plain(volume_type),
            words::time(created_at.as_millisecond())
        ),
        Condition::SnapshotCompleted => {
            "for the deletion: a snapshot of it that was begun for this plan, once it was approved, is completed"
                .to_owned()
        }
        Condition::MemberOf { group } => format!(
            "it is a member of the Auto Scaling group {} and of nothing else, in service and not protected from scale-in",
            plain(group)
        ),
        Condition::GroupCanShrink => {
            "the group may keep up one machine fewer, and nothing but this machine would end: it is above its minimum, changes in no other way, and its zones stay in balance".to_owned()
        }
        Condition::JobPlaceIs { place } => format!(
            "it is still in the queue {}, of the definition {} and in the compute environment {}",
            plain(&place.queue),
            plain(&place.definition),
            plain(&place.environment)
        ),
        Condition::JobAttemptIs { attempt } => format!(
            "it is still in its attempt {}, which started at {}, in the task {} on {}",
            attempt.number,
            words::time(attempt.started_at.as_millisecond()),
            plain(&attempt.task),
            plain(&attempt.machine)
        ),
        Condition::NothingDependsOnIt => "no other job waits for its end".to_owned(),
        Condition::StillStuck { since } => format!(
            "a live look at its machine says that nothing of it has run since {}, without a time in between that nobody saw",
            words::time(since.as_millisecond())
        ),
        Condition::NotOffered => "it has not been offered to another account".to_owned(),
        Condition::NoInstanceStoreWrites => "it has no instance-store disk that was written to since boot".to_owned(),
    }
}

/// What does not come back.
pub(super) fn losses(plan: &PlanContent) -> Vec<String> {
    plan.lost
        .iter()
        .map(|loss| match loss {
            Loss::Memory => "everything in memory: processes and login sessions".to_owned(),
            Loss::MemoryUnlessHibernated => {
                "everything in memory, if hibernating fails: EC2 shuts it down then; and each connection that it holds"
                    .to_owned()
            }
            Loss::PublicIpv4 { address, may_be_elastic: false } => format!("the public address {}", plain(address)),
            Loss::PublicIpv4 { address, may_be_elastic: true } => {
                format!("the public address {}, unless it is elastic", plain(address))
            }
            Loss::ElasticIpv4 { address } => format!(
                "the address {} for good: EC2 gives it to others, and names, lists of who may connect and certificates that have it lead there; \
                 that AllocateAddress gives it back is luck",
                plain(address)
            ),
            Loss::Volume { id } => format!(
                "the volume {} itself: one that is made of its snapshot has another id, and is slow until all of it was read once",
                plain(id)
            ),
            Loss::Machine { id } => {
                format!("the machine {} itself, for good: what its group starts later is another one", plain(id))
            }
            Loss::VolumeOfMachine { id, may_stay: false } => {
                format!("the volume {} with all that it holds: it is deleted with the machine", plain(id))
            }
            Loss::VolumeOfMachine { id, may_stay: true } => {
                format!("the volume {} with all that it holds, if it is deleted with the machine", plain(id))
            }
            Loss::Job { id, submitted_by } => {
                let by = submitted_by.as_ref().map(|by| format!("; {} submitted it, and may wait for it", plain(by)));
                format!(
                    "the job {} for good, with what it has computed and not written elsewhere: AWS Batch does not try a job again that was terminated, whatever its retry strategy says; who wants it again submits it anew{}",
                    plain(id),
                    by.unwrap_or_default()
                )
            }
            Loss::Retries { allowed } => {
                format!("what is left of the {allowed} attempts that it was allowed: it would have had those, had it failed by itself")
            }
            Loss::InstanceStore => "what instance-store disks hold, if it has any".to_owned(),
            Loss::Capacity { instance_type } => {
                format!("the certainty of a place: there may be no capacity for a {} later", plain(instance_type))
            }
        })
        .collect()
}

/// The net saving, or why it is not known.
pub(super) fn saving(plan: &PlanContent) -> String {
    match &plan.net_saving {
        Saving::Known { per_hour, per_month, basis } => {
            format!("{per_hour}, {} a month: {}", per_month.in_cents(), plain(basis))
        }
        Saving::Unknown { why } => format!("not known: {}", plain(why)),
    }
}
