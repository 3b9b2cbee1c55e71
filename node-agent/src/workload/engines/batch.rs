//! AWS Batch: the agent of ECS starts a job's containers in a cgroup that bears the id of the ECS task.
//!
//! The job's own id and name are in environment variables, which are not read. Where a rule of attribution says that a
//! cgroup is a Batch job's, the run is that ECS task.

/// Its name on the wire.
pub const NAME: &str = "batch";
