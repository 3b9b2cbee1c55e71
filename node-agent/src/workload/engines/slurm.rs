//! Slurm: each step of a job has a `slurmstepd` that starts the step's tasks as its own children, and, where the site
//! switched them on, cgroups `job_17/step_0`: <https://slurm.schedmd.com/cgroup_v2.html>
//!
//! A job is one run, however many steps it has; the job's name is in no command line and no cgroup.

use super::argv;

/// Its name on the wire.
pub const NAME: &str = "slurm";
/// A step of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The job's id.
    pub job: String,
    /// `0`, `1`, …, `batch`, `extern` or `interactive`; empty if it is not known.
    pub step: String,
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 32
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
}

/// The step that a `slurmstepd` says it drives: it writes `slurmstepd: [17.0]` over its command line.
#[must_use]
pub fn step_of_title(title: &[u8]) -> Option<Step> {
    let title = argv::text(title.split(|byte| *byte == 0).next()?);
    let (job, step) = title.split_once('[')?.1.split_once(']')?.0.split_once('.')?;
    (is_id(job) && is_id(step)).then(|| Step { job: job.to_owned(), step: step.to_owned() })
}

/// The step that a cgroup belongs to.
#[must_use]
pub fn step_of_cgroup(path: &str) -> Option<Step> {
    let mut parts = path.split('/');
    let is_slurm = |part: &str| part == "slurm" || part.ends_with("slurmstepd.scope") || part.starts_with("slurm_");
    parts.by_ref().find(|part| is_slurm(part))?;
    let job = parts.by_ref().find_map(|part| part.strip_prefix("job_"))?;
    let step = parts.next().and_then(|part| part.strip_prefix("step_")).unwrap_or_default();
    (is_id(job) && (step.is_empty() || is_id(step))).then(|| Step { job: job.to_owned(), step: step.to_owned() })
}
