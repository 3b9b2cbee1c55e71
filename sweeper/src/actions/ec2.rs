//! The calls of EC2 and of Auto Scaling that change something, and none else: one attempt each, with the credentials of the role that acts.

use super::deadline::{Deadline, LeavesBefore};
use crate::inventory::{Failure, aws};
use aws_sdk_ec2::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    operation::RequestId,
    types::{ResourceType, Tag, TagSpecification},
};
use model::plan::Action;
use std::error::Error;

/// Who acts, in one account and region and in somebody's name.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) ec2: aws_sdk_ec2::Client,
    pub(super) autoscaling: aws_sdk_autoscaling::Client,
    pub(super) batch: aws_sdk_batch::Client,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// The provider does it.
    Accepted { request_id: Option<String> },
    /// It does not, for certain. `for_now`: for want of room, or because it was asked too often (Google Cloud), which passes.
    Rejected { why: String, request_id: Option<String>, for_now: bool },
    /// Nobody knows.
    Lost { why: String },
    /// It did not leave.
    NotSent,
}

/// EC2's answer to a dry run of a call that it would do.
const WOULD_DO: &str = "DryRunOperation";

/// It has no room for such a machine in that zone now, and did nothing. EC2 says so with 500, which is no fault whose outcome nobody knows:
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>
const CAPACITY: [&str; 3] = ["InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity"];

/// Asks whether it would do so to the resource of that id, by its own dry run. Auto Scaling has none: of it something is asked whose answer is the same for everybody, so that the role is known to be heard
/// there, and the way is open that the call takes.
pub(super) async fn dry_run(clients: &Clients, action: Action, on: &str) -> Called {
    let client = &clients.ec2;
    let answer = match action {
        Action::EndMember => {
            let answer = Box::pin(clients.autoscaling.describe_termination_policy_types().send()).await;
            return of(answer.map(|answer| answer.request_id().map(str::to_owned)).map_err(told));
        }
        Action::StopInstance => {
            client.stop_instances().instance_ids(on).dry_run(true).send().await.map(drop).map_err(told)
        }
        Action::HibernateInstance => {
            let request = client.stop_instances().instance_ids(on).hibernate(true);
            request.dry_run(true).send().await.map(drop).map_err(told)
        }
        Action::StartInstance => {
            client.start_instances().instance_ids(on).dry_run(true).send().await.map(drop).map_err(told)
        }
        Action::ReleaseAddress => {
            client.release_address().allocation_id(on).dry_run(true).send().await.map(drop).map_err(told)
        }
        Action::DeleteVolume => client.delete_volume().volume_id(on).dry_run(true).send().await.map(drop).map_err(told),
        Action::TerminateJob => return not_here(),
    };
    dry(answer)
}

/// It is AWS Batch that does it (`batch.rs`).
fn not_here() -> Called {
    Called::Rejected { why: "EC2 ends no job".to_owned(), request_id: None, for_now: false }
}

/// What a dry run came to.
fn dry(answer: Result<(), Told>) -> Called {
    match answer {
        Err(Told { code: Some(code), request_id, .. }) if code == WOULD_DO => Called::Accepted { request_id },
        Err(Told { is_certain: true, why, request_id, .. }) => Called::Rejected { why, request_id, for_now: false },
        Err(Told { why, .. }) => Called::Lost { why },
        Ok(()) => {
            let why = "it answered a dry run as if it had done so".to_owned();
            Called::Rejected { why, request_id: None, for_now: false }
        }
    }
}

/// Has a snapshot made of a volume, with these tags from its begin on; one attempt, after a dry run. Whoever lost the answer finds it by its tags.
pub(super) async fn snapshot(clients: &Clients, volume: &str, tags: &[(&str, String)]) -> Called {
    let tags = tags.iter().map(|(key, value)| Tag::builder().key(*key).value(value).build()).collect();
    let tagged = TagSpecification::builder().resource_type(ResourceType::Snapshot).set_tags(Some(tags)).build();
    let request = clients.ec2.create_snapshot().volume_id(volume).tag_specifications(tagged);
    match dry(request.clone().dry_run(true).send().await.map(drop).map_err(told)) {
        Called::Accepted { .. } => {}
        refused => return refused,
    }
    of(request.send().await.map(|answer| answer.request_id().map(str::to_owned)).map_err(told))
}

/// What a call came to that may leave at any time.
pub(super) fn of(answer: Result<Option<String>, Told>) -> Called {
    match answer {
        Ok(request_id) => Called::Accepted { request_id },
        Err(Told { is_certain: true, why, request_id, .. }) => Called::Rejected { why, request_id, for_now: false },
        Err(Told { why, .. }) => Called::Lost { why },
    }
}

/// Makes the call, if it can leave before the deadline. Never by force, and never past the machine's own shutdown.
pub(super) async fn call(clients: &Clients, action: Action, on: &str, deadline: Deadline) -> Called {
    let (client, leaves) = (&clients.ec2, LeavesBefore::new(deadline));
    let answer = match action {
        Action::StopInstance | Action::HibernateInstance => {
            // None is EC2's own word for a plain stop.
            let hibernates = (action == Action::HibernateInstance).then_some(true);
            let request = client.stop_instances().instance_ids(on).set_hibernate(hibernates);
            let request = request.customize().interceptor(leaves.clone());
            request.send().await.map(|answer| answer.request_id().map(str::to_owned)).map_err(told)
        }
        Action::StartInstance => {
            let request = client.start_instances().instance_ids(on).customize().interceptor(leaves.clone());
            request.send().await.map(|answer| answer.request_id().map(str::to_owned)).map_err(told)
        }
        Action::ReleaseAddress => {
            let request = client.release_address().allocation_id(on).customize().interceptor(leaves.clone());
            request.send().await.map(|answer| answer.request_id().map(str::to_owned)).map_err(told)
        }
        Action::DeleteVolume => {
            let request = client.delete_volume().volume_id(on).customize().interceptor(leaves.clone());
            request.send().await.map(|answer| answer.request_id().map(str::to_owned)).map_err(told)
        }
        Action::EndMember => {
            // Without the decrement its group would start another one in its place.
            let request = clients.autoscaling.terminate_instance_in_auto_scaling_group().instance_id(on);
            let request = request.should_decrement_desired_capacity(true).customize().interceptor(leaves.clone());
            Box::pin(request.send()).await.map(|answer| answer.request_id().map(str::to_owned)).map_err(told)
        }
        Action::TerminateJob => return not_here(),
    };
    match answer {
        Err(_) if !leaves.has_left() => Called::NotSent,
        Err(Told { code: Some(code), why, request_id, .. }) if CAPACITY.contains(&code.as_str()) => {
            Called::Rejected { why, request_id, for_now: true }
        }
        answer => of(answer),
    }
}

/// Writes on the machine what was done to it, for whoever finds it.
pub(super) async fn tag(clients: &Clients, instance: &str, tags: &[(&str, String)]) -> Result<(), Failure> {
    let tags = tags.iter().map(|(key, value)| Tag::builder().key(*key).value(value).build()).collect();
    let answer = clients.ec2.create_tags().resources(instance).set_tags(Some(tags)).send().await;
    answer.map(drop).map_err(|error| aws::failure::of(&error))
}

pub(super) struct Told {
    code: Option<String>,
    why: String,
    /// The service itself said so, and it was not its own fault: nothing was done.
    is_certain: bool,
    request_id: Option<String>,
}

pub(super) fn told<E>(error: SdkError<E, HttpResponse>) -> Told
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    let code = match &error {
        SdkError::ServiceError(service) => service.err().code().map(str::to_owned),
        _ => None,
    };
    let request_id = error.raw_response().and_then(|response| response.headers().get("x-amzn-requestid"));
    Told {
        is_certain: code.is_some() && status.is_some_and(|status| (400..500).contains(&status)),
        request_id: request_id.map(str::to_owned),
        why: aws::failure::of(&error).message,
        code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
    use std::time::Duration;
    use tokio::{io::AsyncWriteExt as _, net::TcpListener};

    const INSTANCE: &str = "i-0123456789abcdef0";

    /// Calls a server that refuses whatever reaches it, and says whether anything did.
    async fn called(deadline: Deadline) -> (Called, bool) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let config = aws_sdk_ec2::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-central-1"))
            .endpoint_url(format!("http://{}", listener.local_addr().expect("an address")))
            .credentials_provider(Credentials::new("AKIAIOSFODNN7EXAMPLE", "unchecked", None, None, "test"))
            .retry_config(RetryConfig::disabled())
            .build();
        let autoscaling = aws_sdk_autoscaling::Config::builder().behavior_version(BehaviorVersion::v2026_01_12());
        let autoscaling = autoscaling.retry_config(RetryConfig::disabled());
        let batch = aws_sdk_batch::Config::builder().behavior_version(BehaviorVersion::v2026_01_12());
        let batch = batch.retry_config(RetryConfig::disabled());
        let clients = Clients {
            batch: aws_sdk_batch::Client::from_conf(batch.build()),
            ec2: aws_sdk_ec2::Client::from_conf(config),
            autoscaling: aws_sdk_autoscaling::Client::from_conf(autoscaling.build()),
        };
        let refuses = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let refused = "HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(refused.as_bytes()).await.expect("an answer");
        };
        tokio::pin!(refuses);
        let call = call(&clients, Action::StopInstance, INSTANCE, deadline);
        tokio::pin!(call);
        tokio::select! {
            called = &mut call => (called, false),
            () = &mut refuses => (call.await, true),
        }
    }

    #[tokio::test]
    async fn nothing_leaves_after_its_deadline() {
        assert_eq!(called(Deadline::after(Duration::ZERO)).await, (Called::NotSent, false));
        let (in_time, has_arrived) = called(Deadline::after(Duration::from_secs(60))).await;
        assert!(
            has_arrived && matches!(in_time, Called::Lost { .. }),
            "a server's own fault is no refusal: {in_time:?}"
        );
    }
}
