//! What ECS says of the machines and tasks that containers run on and in.
//!
//! A fact that ECS left out is `None`, never a default. What changes from one listing to the next (counts of tasks, free resources) is not kept in the
//! history: it would be another machine with each sweep.

use jiff::Timestamp;
use model::ResourceKey;
use serde::{Deserialize, Serialize};

/// A machine that is registered with a cluster.
/// <https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_ContainerInstance.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcsContainerInstance {
    /// The resource key; its id is `CLUSTER/ID`.
    pub id: ResourceKey,
    /// By which tasks and jobs name it.
    pub arn: String,
    /// Name of the cluster.
    pub cluster: String,
    /// `i-…`; `mi-…` for a machine that is not EC2's.
    pub instance_id: Option<String>,
    /// `ACTIVE`, `DRAINING`, …
    pub status: Option<String>,
    /// Why, if ECS says.
    pub status_reason: Option<String>,
    /// Whether its agent is heard; without, what ECS says of its tasks may be old.
    pub agent_connected: Option<bool>,
    /// When it registered.
    pub registered_at: Option<Timestamp>,
    /// What started it, if that is a capacity provider.
    pub capacity_provider: Option<String>,
    /// So many tasks run on it, of whatever service or job.
    #[serde(skip)]
    pub running_tasks: Option<u32>,
    /// So many are about to.
    #[serde(skip)]
    pub pending_tasks: Option<u32>,
}

/// A task: the containers that one attempt of a job, or one copy of a service, runs in.
/// <https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Task.html>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcsTask {
    /// The resource key; its id is `CLUSTER/ID`.
    pub id: ResourceKey,
    /// By which jobs name it.
    pub arn: String,
    /// Name of the cluster.
    pub cluster: String,
    /// What it runs on; none on Fargate and before it is placed.
    pub container_instance_arn: Option<String>,
    /// `EC2`, `FARGATE`, `EXTERNAL`, …
    pub launch_type: Option<String>,
    /// `PROVISIONING`, `PENDING`, `RUNNING`, `STOPPED`, …
    pub status: Option<String>,
    /// Where it is on its way to.
    pub desired_status: Option<String>,
    /// `EssentialContainerExited`, `SpotInterruption`, …
    pub stop_code: Option<String>,
    /// Why it stopped, in words.
    pub stopped_reason: Option<String>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When its containers started.
    pub started_at: Option<Timestamp>,
    /// When it stopped.
    pub stopped_at: Option<Timestamp>,
    /// Its containers.
    pub containers: Vec<EcsContainer>,
}

/// A container of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcsContainer {
    /// In the task's definition.
    pub name: Option<String>,
    /// Its id on the machine: 64 hexadecimal digits on EC2, `TASK-NUMBER` on Fargate; none before it starts.
    pub runtime_id: Option<String>,
    /// `PENDING`, `RUNNING`, `STOPPED`.
    pub status: Option<String>,
    /// How it ended.
    pub exit_code: Option<i64>,
    /// Why, if it did not end by itself.
    pub reason: Option<String>,
    /// The GPUs that it has.
    pub gpu_ids: Vec<String>,
}

/// The last part of an ARN: the id of a task or container instance, the name of a cluster, queue or environment.
#[must_use]
pub fn last_part(arn: &str) -> &str {
    arn.rsplit(['/', ':']).next().unwrap_or(arn)
}

/// The cluster that the ARN of a task or container instance names: `arn:…:task/CLUSTER/ID`. The older short form names none.
#[must_use]
pub fn cluster_of(arn: &str) -> Option<&str> {
    match arn.split('/').collect::<Vec<_>>().as_slice() {
        [_, cluster, _] => Some(cluster),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_tells_its_id_and_in_the_long_form_its_cluster() {
        let long = "arn:aws:ecs:us-east-1:123456789012:container-instance/genomics/0f1e";
        let short = "arn:aws:ecs:us-east-1:123456789012:task/0f1e";
        assert_eq!((last_part(long), cluster_of(long)), ("0f1e", Some("genomics")));
        assert_eq!((last_part(short), cluster_of(short)), ("0f1e", None));
        assert_eq!(last_part("arn:aws:batch:us-east-1:1:job-queue/high"), "high");
        assert_eq!(last_part("high"), "high");
    }
}
