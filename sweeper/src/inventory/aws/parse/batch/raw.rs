//! The form of AWS Batch's answers.

use std::collections::BTreeMap;

use serde::Deserialize;

/// An answer of `DescribeComputeEnvironments`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::inventory::aws) struct Environments {
    pub(in crate::inventory::aws) compute_environments: Option<Vec<Environment>>,
}

/// An answer of `DescribeJobQueues`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::inventory::aws) struct Queues {
    pub(in crate::inventory::aws) job_queues: Option<Vec<Queue>>,
}

/// An answer of `ListJobs`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::inventory::aws) struct Summaries {
    pub(in crate::inventory::aws) job_summary_list: Option<Vec<Job>>,
}

/// An answer of `DescribeJobs`.
#[derive(Debug, Deserialize)]
pub(in crate::inventory::aws) struct Jobs {
    pub(in crate::inventory::aws) jobs: Option<Vec<Job>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::inventory::aws) struct Environment {
    pub(super) compute_environment_name: Option<String>,
    pub(super) compute_environment_arn: Option<String>,
    pub(super) state: Option<String>,
    pub(super) status: Option<String>,
    pub(super) status_reason: Option<String>,
    pub(super) r#type: Option<String>,
    pub(super) container_orchestration_type: Option<String>,
    pub(super) ecs_cluster_arn: Option<String>,
    pub(super) eks_configuration: Option<Eks>,
    pub(super) compute_resources: Option<Resources>,
    pub(super) tags: Option<Tags>,
}

pub(super) type Tags = BTreeMap<String, Option<String>>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Eks {
    pub(super) eks_cluster_arn: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resources {
    pub(super) r#type: Option<String>,
    pub(super) allocation_strategy: Option<String>,
    #[serde(rename = "minvCpus")]
    pub(super) minimum: Option<i64>,
    #[serde(rename = "desiredvCpus")]
    pub(super) desired: Option<i64>,
    #[serde(rename = "maxvCpus")]
    pub(super) maximum: Option<i64>,
    pub(super) instance_types: Option<Vec<String>>,
    pub(super) scaling_policy: Option<ScalingPolicy>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScalingPolicy {
    pub(super) min_scale_down_delay_minutes: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::inventory::aws) struct Queue {
    pub(super) job_queue_name: Option<String>,
    pub(super) job_queue_arn: Option<String>,
    pub(super) state: Option<String>,
    pub(super) status: Option<String>,
    pub(super) status_reason: Option<String>,
    pub(super) priority: Option<i64>,
    pub(super) scheduling_policy_arn: Option<String>,
    pub(super) compute_environment_order: Option<Vec<Ordered>>,
    pub(super) tags: Option<Tags>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ordered {
    pub(super) order: Option<i64>,
    pub(super) compute_environment: Option<String>,
}

/// A job as either call tells it: `ListJobs` says less of the same.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::inventory::aws) struct Job {
    pub(super) job_id: Option<String>,
    pub(super) job_arn: Option<String>,
    pub(super) job_name: Option<String>,
    pub(super) job_queue: Option<String>,
    pub(super) job_definition: Option<String>,
    pub(super) status: Option<String>,
    pub(super) status_reason: Option<String>,
    pub(super) created_at: Option<i64>,
    pub(super) started_at: Option<i64>,
    pub(super) stopped_at: Option<i64>,
    pub(super) array_properties: Option<ArrayProperties>,
    pub(super) node_properties: Option<NodeProperties>,
    pub(super) node_details: Option<NodeProperties>,
    pub(super) depends_on: Option<Vec<DependsOn>>,
    pub(super) is_cancelled: Option<bool>,
    pub(super) is_terminated: Option<bool>,
    pub(super) timeout: Option<Timeout>,
    pub(super) retry_strategy: Option<RetryStrategy>,
    pub(super) container: Option<Container>,
    pub(super) ecs_properties: Option<EcsProperties>,
    pub(super) eks_properties: Option<EksProperties>,
    pub(super) attempts: Option<Vec<RawAttempt>>,
    pub(super) eks_attempts: Option<Vec<EksAttempt>>,
    pub(super) tags: Option<Tags>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ArrayProperties {
    pub(super) size: Option<i64>,
    pub(super) index: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeProperties {
    pub(super) num_nodes: Option<i64>,
    pub(super) node_index: Option<i64>,
    pub(super) is_main_node: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DependsOn {
    pub(super) job_id: Option<String>,
    pub(super) r#type: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Timeout {
    pub(super) attempt_duration_seconds: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RetryStrategy {
    pub(super) attempts: Option<i64>,
}

/// The container of a plain job, one of a multi-container job, or one of an attempt: Batch calls the fields alike.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container {
    pub(super) name: Option<String>,
    pub(super) task_arn: Option<String>,
    pub(super) container_instance_arn: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) reason: Option<String>,
    pub(super) log_stream_name: Option<String>,
    pub(super) resource_requirements: Option<Vec<RawRequirement>>,
    pub(super) vcpus: Option<i64>,
    pub(super) memory: Option<i64>,
    pub(super) resources: Option<EksResources>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RawRequirement {
    pub(super) r#type: Option<String>,
    pub(super) value: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct EksResources {
    pub(super) limits: Option<Tags>,
    pub(super) requests: Option<Tags>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EcsProperties {
    pub(super) task_properties: Option<Vec<Task>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    pub(super) task_arn: Option<String>,
    pub(super) container_instance_arn: Option<String>,
    pub(super) containers: Option<Vec<Container>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EksProperties {
    pub(super) pod_properties: Option<RawPod>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawPod {
    pub(super) pod_name: Option<String>,
    pub(super) node_name: Option<String>,
    pub(super) containers: Option<Vec<Container>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawAttempt {
    pub(super) container: Option<Container>,
    pub(super) task_properties: Option<Vec<Task>>,
    pub(super) started_at: Option<i64>,
    pub(super) stopped_at: Option<i64>,
    pub(super) status_reason: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EksAttempt {
    pub(super) eks_cluster_arn: Option<String>,
    pub(super) pod_name: Option<String>,
    pub(super) node_name: Option<String>,
    pub(super) started_at: Option<i64>,
    pub(super) stopped_at: Option<i64>,
    pub(super) status_reason: Option<String>,
}
