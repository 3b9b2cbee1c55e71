//! A job of AWS Batch that is stuck on its machine, as its agent, Batch and ECS tell of it.

use crate::{
    answering::{Says, quiet},
    aws::estate::{environment, job, on, queue, registered, running, runtime_id},
};
use heartbeat::wire;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Its id.
pub const JOB: &str = "stuck";

/// What the agent on the job's machine says: no task of the job ran, or one switched once, or another workload ran for a nanosecond.
#[must_use]
pub fn beat(says: Says, sequence: u64, end: Timestamp) -> wire::Heartbeat {
    let mut beat = quiet(sequence, end);
    // What else runs there rests, too, and its agent says that it sees everything.
    for row in &mut beat.workloads {
        (row.voluntary_switches, row.involuntary_switches, row.forks, row.execs, row.exits) =
            (Some(7), Some(0), Some(0), Some(0), Some(0));
        row.cpu_ns = Some(u64::from(says == Says::WorksBeside && row.class == i32::from(wire::Class::Workload)));
    }
    let told = ["accelerators", "rdma", "interfaces", "interactive_sessions", "timed_waits"].map(|name| {
        let status = wire::CapabilityStatus::Ok.into();
        wire::Capability { name: name.into(), status, ..wire::Capability::default() }
    });
    beat.coverage.get_or_insert_default().capabilities.extend(told);
    let id = format!("{JOB}/{}", runtime_id(JOB));
    beat.workloads.push(wire::WorkloadActivity {
        key: format!("/ecs/{id}"),
        class: wire::Class::Workload.into(),
        name: Some(wire::WorkloadName { kind: "ecs".into(), id, container: None }),
        top_command: "bwa".into(),
        live_processes: 1,
        live_threads: 4,
        cpu_ns: Some(0),
        disk_read_bytes: Some(0),
        disk_written_bytes: Some(0),
        forks: Some(0),
        execs: Some(0),
        exits: Some(0),
        oom_kills: Some(0),
        voluntary_switches: Some(900 + u64::from(says == Says::Works)),
        involuntary_switches: Some(30),
        states: Some(wire::TaskStates { sleeping: 4, ..wire::TaskStates::default() }),
        peers: Some(0),
        ..wire::WorkloadActivity::default()
    });
    beat
}

/// The job, in this status, with more said of it.
#[must_use]
pub fn told(status: &str, more: &Value) -> Value {
    let mut told = on("busy", JOB, "m1");
    let tags = json!({"owner": "ada", "cloud-sweeper:act": "allow"});
    let members = json!({"tags": tags, "retryStrategy": {"attempts": 3, "evaluateOnExit": []}});
    for (key, value) in [&members, more].into_iter().filter_map(Value::as_object).flatten() {
        told[key] = value.clone();
    }
    job(JOB, "busy", status, told)
}

/// What Batch and ECS have: one job that runs on this machine.
#[must_use]
pub fn estate(machine: &str) -> Value {
    // What Batch does not tell the tags of may be exempt.
    let untagged = |mut told: Value| {
        told["tags"] = json!({});
        told
    };
    json!({
        "environments": [untagged(environment("busy", "MANAGED", "ECS", "EC2"))],
        "queues": [untagged(queue("busy", "busy"))],
        "jobs": [told("RUNNING", &json!({"startedAt": STARTED.as_millisecond()}))],
        "container_instances": [registered("busy", "m1", machine)],
        "tasks": [running("busy", JOB, Some("m1"), &[("main", &runtime_id(JOB))])],
    })
}

/// The same whenever it is told.
pub const STARTED: Timestamp = Timestamp::constant(1_790_000_000, 0);
