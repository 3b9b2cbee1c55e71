//! A proposed plan in words.

use super::screen::plain;
use crate::verdict::words;
use recommender::proposal::{Condition, Loss, Plan, Saving, Step};

/// One line per step.
pub(super) fn steps(steps: &[Step]) -> Vec<String> {
    steps.iter().map(step).collect()
}

fn step(step: &Step) -> String {
    match step {
        Step::Confirm { conditions } => {
            let each = conditions.iter().map(|one| format!("\n       - {}", condition(one)));
            format!("look again, and go on only if{}", each.collect::<String>())
        }
        Step::Call(call) => format!("{}   (expects {})", plain(&call.command_line()), call.expect),
        Step::Await { state, within_seconds } => format!("wait up to {within_seconds} s for it to be {state}"),
    }
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::StateIs { state } => format!("it is {state}"),
        Condition::LaunchedAtIs { at } => format!("it was last started at {}", words::time(at.as_millisecond())),
        Condition::InstanceTypeIs { instance_type } => format!("it is a {}", plain(instance_type)),
        Condition::TagsStillPermit => "its tags can be read and permit it".to_owned(),
        Condition::StillIdle => "a live look at the node still says idle".to_owned(),
        Condition::NotProtected => "it has neither stop nor termination protection".to_owned(),
        Condition::NoInstanceStoreWrites => "it has no instance-store disk that was written to since boot".to_owned(),
    }
}

/// What does not come back.
pub(super) fn losses(plan: &Plan) -> Vec<String> {
    plan.lost
        .iter()
        .map(|loss| match loss {
            Loss::Memory => "everything in memory: processes and login sessions".to_owned(),
            Loss::PublicIpv4 { address, may_be_elastic: false } => format!("the public address {}", plain(address)),
            Loss::PublicIpv4 { address, may_be_elastic: true } => {
                format!("the public address {}, unless it is elastic", plain(address))
            }
            Loss::InstanceStore => "what instance-store disks hold, if it has any".to_owned(),
            Loss::Capacity { instance_type } => {
                format!("the certainty of a place: there may be no capacity for a {} later", plain(instance_type))
            }
        })
        .collect()
}

/// The net saving, or why it is not known.
pub(super) fn saving(plan: &Plan) -> String {
    match &plan.net_saving {
        Saving::Known { per_hour, per_month, basis } => {
            format!("{per_hour}, {} a month: {}", per_month.in_cents(), plain(basis))
        }
        Saving::Unknown { why } => format!("not known: {}", plain(why)),
    }
}
