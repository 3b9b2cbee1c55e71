//! A job that nothing speaks for keeping.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    address::Told,
    job::{JobAttempt, JobFacts, JobPlace, JobShape},
};

pub(crate) const STARTED: Timestamp = Timestamp::constant(1_790_000_000, 0);
pub(crate) const JOB: &str = "5f0c5c6e-0000-4000-8000-000000000001";

pub(crate) fn place() -> JobPlace {
    let of = |what: &str| format!("arn:aws:batch:eu-central-1:123456789012:{what}");
    JobPlace {
        queue: of("job-queue/align"),
        definition: of("job-definition/align:3"),
        environment: of("compute-environment/align"),
    }
}

pub(crate) fn attempt() -> JobAttempt {
    let of = |what: &str| format!("arn:aws:ecs:eu-central-1:123456789012:{what}");
    JobAttempt {
        number: 1,
        started_at: STARTED,
        task: of("task/align/0123"),
        container_instance: of("container-instance/align/4567"),
        machine: "i-0123456789abcdef0".to_owned(),
    }
}

pub(crate) fn facts(change: impl FnOnce(&mut JobFacts)) -> JobFacts {
    let mut facts = JobFacts {
        account: "123456789012".to_owned(),
        region: "eu-central-1".to_owned(),
        job_id: JOB.to_owned(),
        name: Some("align-7".to_owned()),
        status: Some("RUNNING".to_owned()),
        shape: JobShape::Plain,
        on_kubernetes: false,
        is_ending: false,
        place: Some(place()),
        attempt: Some(attempt()),
        dependents: Told::Nothing,
        heads: Told::Nothing,
        submitted_by: None,
        attempts_allowed: Some(3),
        tags: Some(BTreeMap::from([("owner".to_owned(), "ada".to_owned())])),
        queue_tags: Some(BTreeMap::new()),
        environment_tags: Some(BTreeMap::new()),
        machine_tags: Some(BTreeMap::new()),
    };
    change(&mut facts);
    facts
}
