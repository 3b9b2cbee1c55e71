//! The one call of AWS Batch that changes something, and what is asked in the place of a dry run: one attempt each, with the credentials of the role that acts.

use super::{
    deadline::{Deadline, LeavesBefore},
    ec2::{Called, Clients, of, told},
};
use aws_sdk_batch::operation::RequestId as _;
use model::{ResourceKey, plan::ContentHash};

/// Batch takes no longer reason, in characters: <https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJob.html>.
const REASON: usize = 1_024;

/// Asks for the tags of a job, which the role may read of the same jobs as it may terminate: so it is known to be heard there, and the way is open that the call takes. Batch has no dry run.
pub(super) async fn is_heard(clients: &Clients, on: &ResourceKey) -> Called {
    let Some(arn) = on.batch_job_arn() else {
        let why = "it is no job of AWS Batch".to_owned();
        return Called::Rejected { why, request_id: None, for_now: false };
    };
    let answer = Box::pin(clients.batch.list_tags_for_resource().resource_arn(arn).send()).await;
    of(answer.map(|answer| answer.request_id().map(str::to_owned)).map_err(told))
}

/// Terminates a job, if the call can leave before the deadline.
pub(super) async fn terminate(clients: &Clients, job: &str, reason: &str, deadline: Deadline) -> Called {
    let leaves = LeavesBefore::new(deadline);
    let request = clients.batch.terminate_job().job_id(job).reason(reason).customize().interceptor(leaves.clone());
    let answer = Box::pin(request.send()).await;
    match answer.map(|answer| answer.request_id().map(str::to_owned)).map_err(told) {
        Err(_) if !leaves.has_left() => Called::NotSent,
        answer => of(answer),
    }
}

/// What whoever looks at the job reads: by which plan it was terminated, and who approved that, as many as have room. The plan comes first, so that nothing cuts it off.
pub(super) fn reason(plan: &ContentHash, people: &[String]) -> String {
    let text = format!("cloud-sweeper plan {plan}: stuck, and approved by {}", people.join(", "));
    text.chars().filter(|c| !c.is_control()).take(REASON).collect()
}

/// Whether Batch gives a plan as the reason why a job has ended.
pub(super) fn is_of(plan: &ContentHash, reason: &str) -> bool {
    reason.contains(plan.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_plan_and_the_people_and_fits() {
        let plan: ContentHash = "a".repeat(64).try_into().expect("a hash");
        let of = |people: &[String]| reason(&plan, people);
        let two = ["ada".to_owned(), "grace\n".to_owned()];
        let told = of(&two);
        assert_eq!(told, format!("cloud-sweeper plan {plan}: stuck, and approved by ada, grace"));
        assert!(is_of(&plan, &told) && !is_of(&"b".repeat(64).try_into().expect("a hash"), &told));
        let many: Vec<String> = (0..200).map(|n| format!("ä-person-{n}")).collect();
        assert_eq!(of(&many).chars().count(), REASON);
        assert!(is_of(&plan, &of(&many)));
        assert!(!of(&[]).is_empty());
    }
}
