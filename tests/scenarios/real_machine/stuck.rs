//! A task of a pipeline that sleeps for ever is found stuck while its neighbour works, and no more once it is over.

use super::site::Site;
use jiff::Timestamp;
use lab::wait;
use serde_json::Value;
use std::time::Duration;
use sweeper::verdict::work::{Contract, WorkCase, WorkPolicy, decision, judge};
use tokio::time::Instant;

/// The window of twenty seconds, and what a busy host adds.
const WITHIN: Duration = Duration::from_secs(200);

/// The task sleeps for ever; beside it a service works a little all the time.
const START: &str =
    "systemctl start pipeline; until pgrep -xf 'sleep 100000'; do sleep 0.2; done; systemctl start nightly";
const GO_ON: &str = "pkill -xf 'sleep 100000'; until ! pgrep -xf 'sleep 100000'; do sleep 0.2; done";
const STOP: &str = "systemctl stop nightly pipeline";

fn stuck(report: &Value) -> Vec<Value> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter(|finding| finding["class"] == "stuck_job").cloned().collect()
}

impl Site {
    /// Tries it.
    pub(super) async fn finds_a_stuck_task(&mut self) {
        self.run(START).await;
        let found = self.swept_until("a stuck task", |found| !found.is_empty()).await;
        let [finding] = found.as_slice() else { panic!("its neighbour is none: {found:#?}") };
        let resource = finding["resource"].as_str().unwrap();
        assert!(resource.starts_with("onprem:::workload/"), "{resource}");
        assert_eq!(finding["described"], "task of the snakemake run lab", "{finding:#}");
        self.run(GO_ON).await;
        self.swept_until("its end", |found| found.is_empty()).await;
        let closed = self.sweeper.json(&["findings", "--closed"]).await;
        let closed = closed.as_array().unwrap().iter().find(|finding| finding["class"] == "stuck_job").unwrap();
        let because = closed["status"]["because"].as_str().unwrap();
        assert!(
            because == "its machine's agent shows it no more" || because.starts_with("it made progress"),
            "{because}"
        );
        self.run(STOP).await;
    }

    /// Sweeps until what is found stuck fits.
    async fn swept_until(&self, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let (began, fits) = (Instant::now(), &fits);
        wait::until(what, 2 * WITHIN, || async move {
            let found = stuck(&self.sweeper.json(&["sweep"]).await);
            let is_over = began.elapsed() > WITHIN;
            assert!(!is_over || fits(&found), "not {what} within {WITHIN:?}: {found:#?}\n{}", self.works().await);
            fits(&found).then_some(found)
        })
        .await
    }

    /// What is said of each open task over the last half-minute.
    async fn works(&self) -> String {
        let all = self.heartbeats().await;
        let (Some(end), Some(begin)) = (all.last(), all.iter().rev().nth(15)) else {
            return "no heartbeats".to_owned();
        };
        let now = end.1.interval.map_or(0, |interval| interval.end_unix_ms);
        let policy = WorkPolicy { stuck_after_ms: 20_000, ..WorkPolicy::default() };
        let told = Contract::open_tasks(&end.1).map(|contract| {
            let case = WorkCase::new(now, policy, contract, [Some(begin), Some(end)], None);
            format!("{}: {}\n{case:#?}", case.contract.what(), decision(&judge(&case), &case))
        });
        let told = told.collect::<Vec<_>>();
        if !told.is_empty() {
            return told.join("\n");
        }
        let age_s = (Timestamp::now().as_millisecond() - now) / 1000;
        let capabilities = end.1.coverage.iter().flat_map(|coverage| &coverage.capabilities);
        let followed = capabilities.filter(|one| one.name == "pipelines").collect::<Vec<_>>();
        format!("no open task in the heartbeat of {age_s} s ago; {followed:?}; runs: {:#?}", end.1.runs)
    }
}
