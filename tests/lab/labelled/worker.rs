//! A machine as a worker of AWS Batch: an instance that an environment started, with a job on it.

use super::{Jobs, Scenario, Site};
use crate::{
    aws::{
        ACCOUNT, Instance, Moto,
        estate::{REGION, environment, job, minutes_ago, on, queue, registered, running},
    },
    imds::{Identity, Imds},
    microvm::HOST,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// What the cloud knows of one machine.
#[derive(Debug)]
pub(super) struct Worker {
    name: String,
    jobs: Jobs,
    metadata: Imds,
    /// The job's task and its container, as ECS and the machine call them.
    task: String,
    container: String,
}

/// Hexadecimal digits, 32 for each.
fn digits(count: usize) -> String {
    (0..count).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect()
}

impl Worker {
    /// Starts its instance, and says to run its job; none if the scenario's machine is no worker.
    pub(super) async fn start(scenario: &Scenario, site: &Site) -> Option<Self> {
        let jobs = scenario.batch?;
        let moto = site.cloud();
        let started = |name: &str| Instance {
            launched_at: Some(Timestamp::now() - SignedDuration::from_hours(24)),
            tags: [("AWSBatchServiceTag".to_owned(), "batch".to_owned())].into(),
            ..Instance::named("m5.large", name)
        };
        let name = scenario.hostname();
        let ids = moto.run(REGION, &[started(&name), started("elsewhere")]).await;
        let metadata = Imds::start(Identity {
            account: ACCOUNT.into(),
            region: REGION.into(),
            instance: ids[0].clone(),
            instance_type: "m5.large".into(),
            life_cycle: "on-demand".into(),
        });
        let worker = Self { name, jobs, metadata, task: digits(1), container: digits(2) };
        worker.put(moto, &ids).await;
        Some(worker)
    }

    /// An environment with a queue of its own, which keeps a machine without a job for a minute: a quarter of an hour.
    async fn put(&self, moto: &Moto, ids: &[String]) {
        let name = self.name.as_str();
        let mut own = environment(name, "MANAGED", "ECS", "EC2");
        own["computeResources"]["scalingPolicy"]["minScaleDownDelayMinutes"] = 1.into();
        let over = |index: i64| {
            let spans = json!({"startedAt": minutes_ago(50), "stoppedAt": minutes_ago(49 - index)});
            self.child(index, "SUCCEEDED", spans)
        };
        let mut jobs = vec![self.job("RUNNING", on(name, &self.task, "own"))];
        match self.jobs {
            Jobs::LastOfArray => {
                jobs.push(job(name, name, "PENDING", json!({"arrayProperties": {"size": 4}})));
                jobs.extend((0..3).map(over));
            }
            Jobs::Tail => jobs.push(job(&format!("{name}-other"), name, "RUNNING", on(name, "other", "elsewhere"))),
            Jobs::Runs | Jobs::Over => {}
        }
        let containers = [("default", self.container.as_str())];
        let put = json!({
            "environments": [own],
            "queues": [queue(name, name)],
            "jobs": jobs,
            "container_instances": [registered(name, "own", &ids[0]), registered(name, "elsewhere", &ids[1])],
            "tasks": [running(name, &self.task, Some("own"), &containers), running(name, "other", Some("elsewhere"), &[])],
        });
        moto.batch(REGION, put).await;
    }

    fn child(&self, index: i64, status: &str, more: Value) -> Value {
        let mut child = job(&format!("{}:{index}", self.name), &self.name, status, more);
        child["arrayProperties"] = json!({"index": index});
        child
    }

    fn job(&self, status: &str, more: Value) -> Value {
        match self.jobs {
            Jobs::LastOfArray => self.child(3, status, more),
            Jobs::Runs | Jobs::Tail | Jobs::Over => job(&self.name, &self.name, status, more),
        }
    }

    /// What Batch says once the machine was left.
    pub(super) async fn leave(&self, site: &Site) {
        if matches!(self.jobs, Jobs::Tail | Jobs::Over) {
            let over = self.job("SUCCEEDED", json!({"stoppedAt": minutes_ago(0)}));
            site.cloud().batch(REGION, json!({"jobs": [over]})).await;
        }
    }

    /// Whether a finding is of its job.
    pub(super) fn has(&self, finding: &Value) -> bool {
        let id = match self.jobs {
            Jobs::LastOfArray => format!("{}:3", self.name),
            Jobs::Runs | Jobs::Tail | Jobs::Over => self.name.clone(),
        };
        let resource = finding["resource"].as_str().and_then(|resource| resource.split_once(":job/"));
        resource.is_some_and(|(_, job)| job == id)
    }

    /// Where the machine asks which instance it is.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{HOST}:{}", self.metadata.port())
    }

    /// Commands with the job's task and container in them.
    pub(super) fn filled(&self, commands: &str) -> String {
        commands.replace("TASK", &self.task).replace("CONTAINER", &self.container)
    }
}
