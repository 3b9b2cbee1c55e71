//! What decided, in one sentence.

use super::{BatchEvidence, Evidence, Finding, GroupEvidence, LeftoverEvidence};
use crate::{
    detectors::Class,
    snapshot::{BatchState, EnvironmentState, Head, JobState, QueueJobs, QueueState, Relaunches, Siblings, TaskState},
    verdict::{
        words,
        work::{decision, spin, spin_in_words},
    },
};
use jiff::Timestamp;
use model::ResourceKind;

impl Finding {
    /// What decided, in one sentence.
    #[must_use]
    pub fn why(&self) -> String {
        match &self.evidence {
            Evidence::Machine(_) if self.class == Class::UnregisteredWorker => {
                "AWS Batch started it, no cluster lists it, and so no job can be placed on it".to_owned()
            }
            Evidence::Machine(_) if self.class == Class::AbandonedWorker => {
                "AWS Batch started it, and its compute environment is listed no more: no job is placed on it, and nobody ends it"
                    .to_owned()
            }
            Evidence::Machine(evidence) if self.class == Class::IdleWorker => {
                let idle = words::decision(&evidence.judgement, &evidence.case);
                format!("its environment keeps no machine for so long without a job; {idle}")
            }
            Evidence::Machine(evidence) if self.class == Class::SilentAgent => match &evidence.case.node {
                Some(node) => {
                    format!("its agent has not been heard since {}", words::time(node.last_heartbeat_unix_ms))
                }
                None => format!("its agent has not been heard since {}", time(self.since)),
            },
            Evidence::Machine(evidence) if self.class == Class::IdleGpu => {
                let threshold = words::cpu(evidence.case.policy.gpu_busy_threshold_ns_per_s);
                let at_once = words::decision(&evidence.judgement, &evidence.case);
                format!("no GPU worked for more than {threshold} in any second; meanwhile: {at_once}")
            }
            Evidence::Machine(evidence) if self.class == Class::QuietHours => {
                evidence.week.as_ref().map_or_else(String::new, |case| case.week.in_words())
            }
            Evidence::Machine(evidence) if self.class == Class::BarelyUsed => {
                let at_once = words::decision(&evidence.judgement, &evidence.case);
                let hours = evidence.hours.iter().map(|hours| format!("; {}", hours.in_words()));
                at_once + &hours.collect::<String>()
            }
            Evidence::Machine(evidence) => match &evidence.metrics {
                Some(metrics) => format!("no agent reports from it; as seen from outside, {}", metrics.seen.in_words()),
                None => words::decision(&evidence.judgement, &evidence.case),
            },
            Evidence::Leftover(evidence) => left_over(self.class, evidence),
            Evidence::Group(evidence) if self.class == Class::RelaunchingGroup => relaunching(evidence, self.resource.kind),
            Evidence::Group(evidence) => of_group(evidence),
            Evidence::Batch(evidence) => of_batch(self.class, evidence),
            Evidence::Work(evidence) if self.class == Class::SpinningJob => {
                spin_in_words(&spin(&evidence.job.work))
            }
            Evidence::Work(evidence) => decision(&evidence.judged, &evidence.job.work),
        }
    }
}

fn time(at: Timestamp) -> String {
    words::time(at.as_millisecond())
}

fn left_over(class: Class, evidence: &LeftoverEvidence) -> String {
    if class == Class::OrphanedSnapshot {
        let since = evidence.listed.since.map(|since| format!(" since {}", time(since))).unwrap_or_default();
        return format!("no image is made of it, and its volume has been in no list{since}");
    }
    let unused = match class {
        Class::UnusedAddress => "tied to nothing",
        Class::StoppedInstance => "stopped",
        _ => "attached to nothing",
    };
    match evidence.listed.since {
        Some(since) => format!("{unused} in every list since {}", time(since)),
        None => format!("{unused} when it was last listed so"),
    }
}

fn of_group(evidence: &GroupEvidence) -> String {
    let members = evidence.group.state.as_ref().and_then(|state| state.members.as_ref());
    let Some(members) = members else { return "all its machines were idle when it was last listed so".to_owned() };
    let each = match members.count {
        1 => "its one machine is idle".to_owned(),
        many => format!("each of its {many} machines is idle"),
    };
    let since = members.since.map(|since| format!(", all at once since {}", time(since))).unwrap_or_default();
    format!("{each}{since}; one that is ended alone is started again")
}

fn relaunching(evidence: &GroupEvidence, kind: ResourceKind) -> String {
    let started = if kind == ResourceKind::LaunchTemplate { "were started from it" } else { "it had started" };
    let ended = evidence.group.state.as_ref().and_then(|state| state.relaunches.as_ref());
    let Some(Relaunches { machines, last, idle_s, spent, .. }) = ended else {
        return format!("machines that {started} were found idle, and have ended");
    };
    let idle = words::span(i64::try_from(idle_s.saturating_mul(1_000)).unwrap_or(i64::MAX));
    let spent = spent.map(|spent| format!(", which cost {}", spent.in_cents())).unwrap_or_default();
    format!(
        "{machines} machines that {started} were found idle within a week and have ended, the last was idle until {}; together they were idle for {idle}{spent}",
        time(*last)
    )
}

fn of_batch(class: Class, evidence: &BatchEvidence) -> String {
    match &evidence.batch.state {
        Some(BatchState::Queue(QueueState { jobs: Some(jobs) })) => blocked(jobs),
        Some(BatchState::Environment(environment)) => held(environment),
        Some(BatchState::Job(job)) => match class {
            Class::LostJob => lost(job),
            Class::StragglingJob => straggling(job),
            Class::OrphanedJob => orphaned(job),
            _ => "AWS Batch says that it is STARTING".to_owned(),
        },
        Some(BatchState::Queue(QueueState { jobs: None })) | None => "it was so when it was last listed".to_owned(),
    }
}

fn blocked(jobs: &QueueJobs) -> String {
    let waits = match jobs.runnable {
        1 => "1 job waits to be placed".to_owned(),
        many => format!("{many} jobs wait to be placed"),
    };
    let Some(first) = &jobs.first else { return waits };
    let name = first.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let since = first.since.map(|since| format!(" since {}", time(since))).unwrap_or_default();
    match &first.blocked_by {
        Some(why) => format!("{waits}, {}{name}{since}: AWS Batch says {why}", first.id),
        None => format!("{waits}, {}{name}{since}: no job of the queue runs, and AWS Batch does not say why", first.id),
    }
}

fn held(environment: &EnvironmentState) -> String {
    let kept = environment.min_vcpus.map_or_else(|| "some vCPUs".to_owned(), |min| format!("at least {min} vCPUs"));
    let machines =
        environment.machines.map(|count| format!(" ({} registered)", words::count(count, "machine", "machines")));
    let since = environment.jobs.map(|jobs| format!(" since {}", time(jobs.last_end))).unwrap_or_default();
    format!("it keeps {kept}{}, and no job has been in its queues{since}", machines.unwrap_or_default())
}

fn lost(job: &JobState) -> String {
    let status = job.status.as_deref().unwrap_or("on a machine");
    match &job.task {
        TaskState::Known { stopped_at, reason, .. } => {
            let at = stopped_at.map(|at| format!(" at {}", time(at))).unwrap_or_default();
            let why = reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("AWS Batch says that it is {status}, and its task has stopped{at}{why}")
        }
        TaskState::Missing { .. } | TaskState::NotNamed => {
            format!("AWS Batch says that it is {status}, and ECS does not know its task")
        }
    }
}

fn orphaned(job: &JobState) -> String {
    let Some(Head { id, name, ended_at, .. }) = &job.head else {
        return "the job that submitted it has failed".to_owned();
    };
    let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let ended = ended_at.map(|at| format!(" at {}", time(at))).unwrap_or_default();
    format!(
        "the job that submitted it, {id}{name}, has failed{ended}; one that is started anew submits jobs of its own"
    )
}

fn straggling(job: &JobState) -> String {
    let Some(Siblings { over, longest_s, last_end, .. }) = job.siblings else {
        return "all other children of its array are over".to_owned();
    };
    let longest = words::span(i64::try_from(longest_s.saturating_mul(1_000)).unwrap_or(i64::MAX));
    let began = job.since.map(|at| format!(", and it runs since {}", time(at))).unwrap_or_default();
    format!(
        "all {over} other children of its array are over, the last at {}; the longest of them took {longest}{began}",
        time(last_end)
    )
}
