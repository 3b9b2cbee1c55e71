//! An AWS API that says what it is told to say: answers that AWS once gave, whole or changed on purpose.
//!
//! The client that asks is the product's own, over HTTP; only what comes back is decided here. The answers are installed by
//! `make setup` from the packages that `recorded.txt` names.

use std::{
    collections::HashMap,
    fs,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
};
use serde_json::Value;
use tokio::{net::TcpListener, task::AbortHandle};

use crate::binaries;

/// What is said to which action, such as `DescribeVolumes`; a REST API's is its path, such as `/v1/listjobs`.
type Answers = Arc<Mutex<HashMap<String, String>>>;

/// A running server; it ends with this value.
#[derive(Debug)]
pub struct Recorded {
    url: String,
    answers: Answers,
    served: AbortHandle,
}

impl Recorded {
    /// Starts a server that knows no answer yet.
    ///
    /// # Panics
    ///
    /// When no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on the loopback interface");
        let url = format!("http://{}", listener.local_addr().expect("the port"));
        let answers = Answers::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&answers));
        let served = tokio::spawn(async { axum::serve(listener, router).await }).abort_handle();
        Self { url, answers, served }
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on this is said to that action.
    ///
    /// # Panics
    ///
    /// When a request broke off in the middle.
    pub fn say(&self, action: &str, answer: impl Into<String>) {
        self.answers.lock().expect("no request broke off").insert(action.to_owned(), answer.into());
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.served.abort();
    }
}

async fn answer(State(answers): State<Answers>, uri: Uri, headers: HeaderMap, request: String) -> impl IntoResponse {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()?.rsplit('.').next());
    let action = request.split('&').find_map(|pair| pair.strip_prefix("Action="));
    let action = target.or(action).unwrap_or(uri.path());
    let answer = answers.lock().expect("no request broke off").get(action).cloned();
    let status = if answer.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let answer = answer.unwrap_or_default();
    let form = if answer.starts_with('{') { "application/json" } else { "text/xml;charset=UTF-8" };
    (status, [("content-type", form)], answer)
}

/// The answers to one action among the examples that AWS publishes with its model of a service: `("batch/2016-08-10", "DescribeJobs")`. They are
/// documentation, not recordings.
///
/// # Panics
///
/// When botocore is not installed.
#[must_use]
pub fn published(model: &str, action: &str) -> Vec<Value> {
    let lib = binaries::installed(&binaries::checkout().join(".setup/venv/lib"));
    let mut versions = fs::read_dir(lib).expect("Python's folder").map(|entry| entry.expect("an entry").path());
    let data = versions.find_map(|version| {
        let path = version.join("site-packages/botocore/data").join(model).join("examples-1.json");
        fs::read_to_string(path).ok()
    });
    let examples: Value = serde_json::from_str(&data.expect("botocore's examples")).expect("JSON");
    let examples = examples["examples"][action].as_array().cloned().unwrap_or_default();
    examples.into_iter().map(|mut example| example["output"].take()).collect()
}

/// A recorded answer: `botocore/ec2-describe-volumes.xml`.
///
/// # Panics
///
/// When it is not installed.
#[must_use]
pub fn recording(name: &str) -> String {
    let path = binaries::installed(&binaries::checkout().join(".setup/recorded").join(name));
    fs::read_to_string(path).expect("a recorded answer is text")
}
