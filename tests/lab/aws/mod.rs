//! An AWS API server: moto in server mode behind `server.py`, with instances of the scenario's making.
//!
//! It answers EC2, Auto Scaling, STS and the price list (`price_list.jsonl`) on a port of its own. Its credentials are of one account; those of an assumed role are of
//! the account that the role's ARN names. Each has the same three enabled regions. It has no instances until it is given some.

use std::{collections::BTreeMap, fs, panic, path::Path};

use aws_config::{BehaviorVersion, ConfigLoader, Region};
use aws_credential_types::Credentials;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::forks::Fork;

mod batch;
mod cloudtrail;
mod cloudwatch;
pub mod estate;
mod forks;
mod instance;
mod leftovers;
mod mutate;
mod spot;

pub use cloudtrail::Launch;
pub use cloudwatch::Series;
pub use instance::Instance;
pub use leftovers::{Address, Group, Member, Snapshot, Volume};
pub use mutate::Place;
pub use spot::SpotChange;

/// The account that the credentials of [`Moto::environment`] are of.
pub const ACCOUNT: &str = "123456789012";

/// The regions that the account has enabled.
pub const REGIONS: [&str; 3] = ["eu-central-1", "us-east-1", "us-west-2"];

/// A running AWS API server; it ends with this value.
#[derive(Debug)]
pub struct Moto {
    url: String,
    client: reqwest::Client,
    _fork: Fork,
}

/// Something that goes wrong on purpose. A part that is left out fits every call.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fault {
    /// `ec2`, `autoscaling`, `sts`, `pricing`
    pub service: Option<String>,
    /// `DescribeInstances`, …
    pub action: Option<String>,
    /// Only in this account.
    pub account: Option<String>,
    /// Only in this region.
    pub region: Option<String>,
    /// Only where the request has these parameters: `NextToken` is the page.
    pub parameters: BTreeMap<String, String>,
    /// The HTTP status; 400 if left out.
    pub status: Option<u16>,
    /// The provider's error code; without one the call is only delayed.
    pub code: Option<String>,
    /// In the provider's words.
    pub message: Option<String>,
    /// Seconds before the answer.
    pub delay_s: Option<u32>,
    /// The call does what it was asked for, and only then goes wrong.
    pub acts: bool,
    /// So many calls pass before the first that goes wrong.
    pub after: Option<u32>,
    /// From this call on the credentials that it was made with are expired, for this and all other calls.
    pub expire: bool,
    /// So many times; for ever if left out.
    pub times: Option<u32>,
}

/// A role that may be assumed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Role {
    /// Its ARN.
    pub arn: String,
    /// Only with this external id.
    pub external_id: Option<String>,
    /// The account that its credentials are of, if it is not the ARN's.
    pub account: Option<String>,
}

/// One call that the server has seen.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// `ec2`
    pub service: String,
    /// `StopInstances`
    pub action: String,
    /// That the credentials are of.
    pub account: String,
    /// Of the credentials' scope.
    pub region: String,
    /// Of the credentials.
    pub access_key: String,
    /// The request's parameters.
    pub parameters: Value,
}

/// What an AWS client of this program asks the server at `url` with.
#[must_use]
pub fn loader(url: &str) -> ConfigLoader {
    aws_config::defaults(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .endpoint_url(url)
        .credentials_provider(Credentials::new("AKIAIOSFODNN7EXAMPLE", "unchecked", None, None, "laboratory"))
}

impl Moto {
    /// Starts a server whose log lies in `folder`, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not start; `make setup` installs it.
    pub async fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("the log's folder can be made");
        let log = folder.join("moto.log");
        let started = tokio::task::spawn_blocking(move || Fork::start(&log)).await;
        let (fork, port) = started.unwrap_or_else(|failed| panic::resume_unwind(failed.into_panic()));
        Self { url: format!("http://127.0.0.1:{port}"), client: reqwest::Client::new(), _fork: fork }
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What an AWS client of this program asks this server with.
    #[must_use]
    pub fn loader(&self) -> ConfigLoader {
        loader(&self.url)
    }

    /// The environment in which any AWS client finds this server and no other, with credentials that it accepts.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", self.url.as_str()),
            ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "the server does not check it"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// Starts instances in a region and returns their ids, in the order asked for.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn run(&self, region: &str, instances: &[Instance]) -> Vec<String> {
        self.run_in(ACCOUNT, region, instances).await
    }

    /// The same in another account.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn run_in(&self, account: &str, region: &str, instances: &[Instance]) -> Vec<String> {
        self.made("instances", json!({"account": account, "region": region, "instances": instances})).await
    }

    /// Starts tens of thousands of instances of several types in a region. On so many of them runs a job of AWS Batch; all of them
    /// were busy for the last `hours`, as CloudWatch saw it.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn estate(&self, region: &str, instances: usize, jobs: usize, hours: u32) {
        const TYPES: [&str; 5] = ["m5.large", "c5.4xlarge", "r5.2xlarge", "t3.micro", "g4dn.xlarge"];
        let team = |n: usize| Instance {
            instance_type: Some(TYPES[n].into()),
            count: u32::try_from(instances / TYPES.len() + usize::from(n < instances % TYPES.len())).ok(),
            tags: [("Name".to_owned(), format!("worker-{n}")), ("team".to_owned(), format!("team-{n}"))].into(),
            ..Instance::default()
        };
        let instances: Vec<_> = (0..TYPES.len()).map(team).collect();
        let hour = Timestamp::now().as_second() / 3_600;
        let from = Timestamp::from_second((hour - i64::from(hours)) * 3_600).expect("a time");
        let of = |value: f64| vec![value; usize::try_from(hours).expect("some hours")];
        let metrics = json!({
            "from": from,
            "period_s": 3_600,
            "metrics": { "CPUUtilization": of(40.0), "NetworkIn": of(90_000.0), "NetworkOut": of(60_000.0) },
        });
        let estate =
            json!({"account": ACCOUNT, "region": region, "instances": instances, "jobs": jobs, "metrics": metrics});
        self.post("estate", estate).await;
    }

    /// Keeps requests as they come from now on, or no more.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn record(&self, on: bool) {
        self.post("record", json!({"on": on})).await;
    }

    /// The requests that were kept.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn requests<T: DeserializeOwned>(&self) -> Vec<T> {
        let answer = self.client.get(format!("{}/_lab/requests", self.url)).send().await.expect("the server answers");
        answer.json().await.expect("a list of requests")
    }

    /// Changes what EC2 says of one instance.
    ///
    /// # Panics
    ///
    /// When the server does not know it.
    pub async fn change(&self, region: &str, id: &str, change: &Instance) {
        self.change_in(ACCOUNT, region, id, change).await;
    }

    /// The same in another account.
    ///
    /// # Panics
    ///
    /// When the server does not know it.
    pub async fn change_in(&self, account: &str, region: &str, id: &str, change: &Instance) {
        self.post("change", json!({"account": account, "region": region, "id": id, "set": change})).await;
    }

    /// Has a zone offer a type of machine from now on, or offer it no more.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn offer(&self, region: &str, zone: &str, instance_type: &str, is_offered: bool) {
        let asked = json!({"region": region, "zone": zone, "type": instance_type, "is_offered": is_offered});
        self.post("offer", asked).await;
    }

    /// Sends one call of a query API (EC2, IAM, STS) as it is and returns the answer's text.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn query(&self, service: &str, region: &str, call: &[(&str, &str)]) -> String {
        let scope = format!("AKIAIOSFODNN7EXAMPLE/20260101/{region}/{service}/aws4_request");
        let unchecked = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=unchecked");
        let body = reqwest::Url::parse_with_params("http://localhost/", call).expect("a query");
        let request = self.client.post(&self.url).header("authorization", unchecked);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer =
            request.body(body.query().unwrap_or_default().to_owned()).send().await.expect("the server answers");
        let (status, text) = (answer.status(), answer.text().await.expect("a text"));
        assert!(status.is_success(), "{call:?}: {text}");
        text
    }

    /// From now on only these roles may be assumed.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn roles(&self, roles: &[Role]) {
        self.post("roles", json!({"roles": roles})).await;
    }

    /// Puts these faults in the place of all earlier ones.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn fail(&self, faults: &[Fault]) {
        self.post("faults", json!({"faults": faults})).await;
    }

    /// No page is larger than this, whatever a client asks for.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn page_size(&self, resources: u32) {
        self.post("paging", json!({"page_size": resources})).await;
    }

    /// From now on every page points to the first one.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn repeat_page_tokens(&self) {
        self.post("paging", json!({"repeat_token": true})).await;
    }

    /// Every call of an AWS API so far.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn calls(&self) -> Vec<Call> {
        let answer = self.client.get(format!("{}/_lab/calls", self.url)).send().await.expect("the server answers");
        answer.json().await.expect("a list of calls")
    }

    /// The calls by this name, of whichever service has it, that were not dry runs.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub async fn called(&self, action: &str) -> Vec<Call> {
        let mut calls = self.calls().await;
        calls.retain(|call| call.action == action && call.parameters["DryRun"] != "true");
        calls
    }

    /// The state of an instance, in EC2's words.
    ///
    /// # Panics
    ///
    /// When the server does not answer, or knows no such instance.
    pub async fn instance_state(&self, region: &str, instance: &str) -> String {
        let call = [("Action", "DescribeInstances"), ("Version", "2016-11-15"), ("InstanceId.1", instance)];
        let answer = self.query("ec2", region, &call).await;
        let between = |text: &str, begin: &str, end: &str| {
            let text = text.split_once(begin)?.1;
            Some(text.split_once(end)?.0.to_owned())
        };
        let state = between(&answer, "<instanceState>", "</instanceState>")
            .and_then(|state| between(&state, "<name>", "</name>"));
        state.unwrap_or_else(|| panic!("no state of {instance}: {answer}"))
    }

    async fn made(&self, what: &str, body: Value) -> Vec<String> {
        #[derive(Deserialize)]
        struct Made {
            ids: Vec<String>,
        }
        let answer = self.post(what, body).await;
        serde_json::from_value::<Made>(answer).expect("the ids of what was made").ids
    }

    async fn post(&self, what: &str, body: Value) -> Value {
        let answer = self.client.post(format!("{}/_lab/{what}", self.url)).json(&body).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status).expect("the server agrees");
        answer.json().await.expect("the server answers in JSON")
    }
}
