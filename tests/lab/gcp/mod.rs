//! A stand-in for Google Cloud: Compute Engine, Cloud Monitoring and the catalogue of Cloud Billing behind `server.py`, with resources of the scenario's making.
//!
//! Each request and each answer is checked against Google's published discovery documents, which `make setup` installs. When this
//! value ends, it panics if any was wrong. It starts in about a second.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{binaries, process::Running};

/// Reading the documents takes most of it.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The project of most scenarios.
pub const PROJECT: &str = "omics-prod-1";

/// A running stand-in; it ends with this value.
#[derive(Debug)]
pub struct Google {
    url: String,
    client: reqwest::Client,
    process: Running,
    wrong: std::path::PathBuf,
}

/// Something that goes wrong on purpose. A part that is left out fits every call.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fault {
    /// `compute.instances.aggregatedList`, …
    pub method: Option<String>,
    /// Only in this project.
    pub project: Option<String>,
    /// Only for this page; the first one has an empty token.
    pub token: Option<String>,
    /// The HTTP status; without one the call is only delayed.
    pub status: Option<u16>,
    /// Google's word for why.
    pub reason: Option<String>,
    /// In the provider's words.
    pub message: Option<String>,
    /// Seconds before the answer.
    pub delay_s: Option<u32>,
    /// So many calls pass before the first that goes wrong.
    pub after: Option<u32>,
    /// From this call on the access token that it was made with is taken no more.
    pub expire: bool,
    /// So many times; for ever if left out.
    pub times: Option<u32>,
    /// What was asked for is done all the same.
    pub acted: bool,
}

/// A place that does not answer for a kind.
#[derive(Clone, Debug, Serialize)]
pub struct Unreachable {
    /// `instances`, `disks`, …
    pub kind: String,
    /// `zones/europe-west3-a`, …
    pub place: String,
    /// In which of Google's two ways it is told: `unreachables` or `warning`.
    pub how: String,
}

/// One call that the stand-in has seen.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// `compute.instances.aggregatedList`
    pub method: String,
    /// Project.
    pub project: Option<String>,
    /// The request's parameters.
    pub query: Value,
    /// Of the credentials.
    pub access_token: String,
    /// What the path names.
    pub path: Value,
    /// Why it was made, as Cloud Audit Logs would tell.
    pub reason: Option<String>,
}

impl Google {
    /// Starts a stand-in whose log lies in `folder`, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not start; `make setup` installs it.
    pub async fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("the log's folder can be made");
        let wrong = folder.join("wrong");
        let mut command = Command::new(binaries::python("python"));
        command
            .arg(binaries::checkout().join("tests/lab/gcp/server.py"))
            .arg("--documents")
            .arg(binaries::installed(&binaries::checkout().join(".setup/recorded/google")))
            .arg("--wrong")
            .arg(&wrong)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = Running::start("google", &mut command, folder);
        let line = process.line_with("listening on ", START_TIMEOUT).await;
        let url = format!("http://{}", line.trim_start_matches("listening on ").trim());
        Self { url, client: reqwest::Client::new(), process, wrong }
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The part of a configuration that names it, with these projects.
    #[must_use]
    pub fn config(&self, projects: &[&str]) -> String {
        let Self { url, .. } = self;
        format!(
            "[gcp]\nenabled = \"yes\"\nprojects = {projects:?}\ncompute_endpoint = \"{url}\"\nmonitoring_endpoint = \"{url}\"\nbilling_endpoint = \"{url}\"\nmonitoring = true\n"
        )
    }

    /// The environment in which any client of Google's finds credentials that it accepts, and no others; they lie in `folder`.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    #[must_use]
    pub fn environment(&self, folder: &Path) -> Vec<(String, String)> {
        let file = folder.join("credentials.json");
        let credentials = json!({
            "type": "authorized_user", "client_id": "laboratory", "client_secret": "unchecked", "refresh_token": "unchecked",
            "token_uri": format!("{}/token", self.url),
        });
        fs::write(&file, credentials.to_string()).expect("credentials can be written");
        vec![("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), file.display().to_string())]
    }

    /// The file of the credentials that act, and do nothing else; it lies in `folder`.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    #[must_use]
    pub fn acting(&self, folder: &Path) -> std::path::PathBuf {
        let file = folder.join("acting.json");
        let credentials = json!({
            "type": "authorized_user", "client_id": "laboratory", "client_secret": "unchecked", "refresh_token": "acts",
            "token_uri": format!("{}/token", self.url),
        });
        fs::write(&file, credentials.to_string()).expect("credentials can be written");
        file
    }

    /// Changes one machine of [`PROJECT`]: members of its record, of which null takes one away.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn change(&self, place: &str, number: &str, with: &Value) {
        self.post("change", json!({"project": PROJECT, "place": place, "number": number, "with": with})).await;
    }

    /// One machine of [`PROJECT`], as it is now.
    ///
    /// # Panics
    ///
    /// When the stand-in has none.
    pub async fn machine(&self, place: &str, number: &str) -> Value {
        self.post("machine", json!({"project": PROJECT, "place": place, "number": number})).await
    }

    /// From now on these refer to a machine.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn referrers(&self, number: &str, referrers: &[&str]) {
        self.post("referrers", json!({"number": number, "referrers": referrers})).await;
    }

    /// So many starts from now on find no room.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn full(&self, times: u32) {
        self.post("full", json!({"times": times})).await;
    }

    /// From now on who acts may not do these, and everything else.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn deny(&self, permissions: &[&str]) {
        self.post("denied", json!({"permissions": permissions})).await;
    }

    /// Puts these resources in the place of all earlier ones of that kind there: `instances` in `zones/europe-west3-a`.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn resources(&self, project: &str, kind: &str, place: &str, resources: &[Value]) {
        self.post("resources", json!({"project": project, "kind": kind, "place": place, "resources": resources})).await;
    }

    /// Makes types of machines known in a zone.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn types(&self, project: &str, place: &str, types: &[Value]) {
        self.post("types", json!({"project": project, "place": place, "types": types})).await;
    }

    /// The catalogue of what Compute Engine bills.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn skus(&self, skus: &[Value]) {
        self.post("skus", json!({"skus": skus})).await;
    }

    /// What Cloud Monitoring has: `{"metric", "zone", "instance", "points": [[second, value], …]}`.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn series(&self, project: &str, series: &[Value]) {
        self.post("series", json!({"project": project, "series": series})).await;
    }

    /// From now on this is said to that method, whatever Google could say; none: no more.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn say(&self, method: &str, answer: Option<&Value>) {
        self.post("say", json!({"method": method, "answer": answer})).await;
    }

    /// Puts these places in the place of all earlier ones that do not answer.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn unreachable(&self, places: &[Unreachable]) {
        self.post("unreachable", json!({"places": places})).await;
    }

    /// No page is larger than this, whatever a client asks for.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn page_size(&self, resources: u32) {
        self.post("paging", json!({"page_size": resources})).await;
    }

    /// From now on every page of so many points to the first one.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn repeat_page_tokens(&self, resources: u32) {
        self.post("paging", json!({"page_size": resources, "repeat_token": true})).await;
    }

    /// Puts these faults in the place of all earlier ones.
    ///
    /// # Panics
    ///
    /// When the stand-in refuses.
    pub async fn fail(&self, faults: &[Fault]) {
        self.post("faults", json!({"faults": faults})).await;
    }

    /// Every call of an API since the last time that this was asked.
    ///
    /// # Panics
    ///
    /// When the stand-in does not answer.
    pub async fn calls(&self) -> Vec<Call> {
        let calls = serde_json::from_value(self.post("calls", json!({})).await);
        calls.expect("a list of calls")
    }

    /// What was no request or no answer of Google's so far; it is forgotten with this.
    ///
    /// # Panics
    ///
    /// When it cannot be forgotten.
    #[must_use]
    pub fn take_wrong(&self) -> String {
        let wrong = fs::read_to_string(&self.wrong).unwrap_or_default();
        if !wrong.is_empty() {
            fs::remove_file(&self.wrong).expect("the list of what is wrong can be taken away");
        }
        wrong
    }

    async fn post(&self, what: &str, body: Value) -> Value {
        let answer = self.client.post(format!("{}/_lab/{what}", self.url)).json(&body).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status).expect("the stand-in agrees");
        answer.json().await.expect("the stand-in answers in JSON")
    }
}

impl Drop for Google {
    fn drop(&mut self) {
        assert!(self.process.ended().is_none(), "the stand-in has ended: {}", self.process.output());
        // A scenario that fails already says why.
        let wrong = self.take_wrong();
        assert!(thread::panicking() || wrong.is_empty(), "not of Google's own description: {wrong}");
    }
}
