//! The one call of AWS Batch that changes something, and what is asked in the place of a dry run: one attempt each, with the credentials of the role that acts.

use super::{
    deadline::{Deadline, LeavesBefore},
    ec2::{Called, Clients, of, told},
};
use aws_sdk_batch::operation::RequestId as _;
use heartbeat::text::visible;
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

/// Whether Batch gives as the reason why a job has ended what this plan's call said, word for word: whoever knows a plan's hash may write it into a reason of their own.
pub(super) fn is_of(plan: &ContentHash, people: &[String], told: &str) -> bool {
    told == reason(plan, people)
}

/// So much of a reason that somebody else gave is told, in characters.
const TOLD: usize = 200;

/// A reason that anybody may have written, for people: short, and with everything hidden in it made visible.
pub(super) fn in_short(reason: &str) -> String {
    let cut: String = reason.chars().take(TOLD).collect();
    let more = if cut.len() < reason.len() { "…" } else { "" };
    format!("{}{more}", visible(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_batch::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
    use std::time::Duration;
    use tokio::{io::AsyncWriteExt as _, net::TcpListener};

    #[test]
    fn a_reason_names_the_plan_and_the_people_and_fits() {
        let plan: ContentHash = "a".repeat(64).try_into().expect("a hash");
        let of = |people: &[String]| reason(&plan, people);
        let two = ["ada".to_owned(), "grace\n".to_owned()];
        let told = of(&two);
        assert_eq!(told, format!("cloud-sweeper plan {plan}: stuck, and approved by ada, grace"));
        let is_its = |said: &str| is_of(&plan, &two, said);
        assert!(is_its(&told) && !is_of(&"b".repeat(64).try_into().expect("a hash"), &two, &told));
        assert!(!is_of(&plan, &two[..1], &told), "in the names of others");
        for others in
            [format!("not {told}"), format!("{told} "), format!("I looked at {plan} and ended it"), String::new()]
        {
            assert!(!is_its(&others), "{others}");
        }
        let many: Vec<String> = (0..200).map(|n| format!("ä-person-{n}")).collect();
        assert_eq!(of(&many).chars().count(), REASON);
        assert!(is_of(&plan, &many, &of(&many)));
        assert!(!of(&[]).is_empty());
    }

    #[test]
    fn a_reason_of_somebody_elses_is_cut_and_shows_what_is_hidden() {
        assert_eq!(in_short("Host EC2 terminated."), "Host EC2 terminated.");
        assert_eq!(in_short("a\nb\u{202e}c\u{1b}[2J"), "a\\u{a}b\\u{202e}c\\u{1b}[2J");
        assert_eq!(in_short(&"ä".repeat(200)), "ä".repeat(200));
        assert_eq!(in_short(&"ä".repeat(201)), format!("{}…", "ä".repeat(200)));
    }

    /// What becomes of a termination that has to leave before the deadline, at a server that refuses with a fault of its own; and whether that heard of it.
    async fn terminated(deadline: Deadline) -> (Called, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let of = || format!("http://{}", listener.local_addr().expect("an address"));
        let key = Credentials::new("AKIAIOSFODNN7EXAMPLE", "unchecked", None, None, "test");
        let batch = aws_sdk_batch::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(key)
            .endpoint_url(of())
            .retry_config(RetryConfig::disabled())
            .build();
        let none = aws_sdk_ec2::Config::builder().behavior_version(BehaviorVersion::v2026_01_12());
        let scaling = aws_sdk_autoscaling::Config::builder();
        let scaling = scaling.behavior_version(BehaviorVersion::v2026_01_12());
        let clients = Clients {
            ec2: aws_sdk_ec2::Client::from_conf(none.build()),
            autoscaling: aws_sdk_autoscaling::Client::from_conf(scaling.build()),
            batch: aws_sdk_batch::Client::from_conf(batch),
        };
        let refuses = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let refused = "HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(refused.as_bytes()).await.expect("an answer");
        };
        tokio::pin!(refuses);
        let call = terminate(&clients, "stuck", "a test", deadline);
        tokio::pin!(call);
        tokio::select! {
            called = &mut call => (called, false),
            () = &mut refuses => (call.await, true),
        }
    }

    #[tokio::test]
    async fn no_termination_leaves_after_its_deadline() {
        assert_eq!(terminated(Deadline::after(Duration::ZERO)).await, (Called::NotSent, false));
        let (in_time, has_arrived) = terminated(Deadline::after(Duration::from_secs(60))).await;
        assert!(
            has_arrived && matches!(in_time, Called::Lost { .. }),
            "a fault of Batch's own is no refusal: {in_time:?}"
        );
    }
}
