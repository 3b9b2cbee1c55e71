//! The calls of Compute Engine that change something, and none else: one attempt each, with the credentials that act.
//!
//! They are made without Google's client: it takes neither the header that names who approved (`X-Goog-Request-Reason`, which Cloud Audit Logs keep) nor a check at the last moment
//! whether a call may still leave.

use super::{deadline::Deadline, ec2::Called};
use crate::{
    chain,
    config::ActProject,
    inventory::{Failure, FailureKind, gcp},
};
use axum::http::{Extensions, HeaderMap, HeaderValue};
use google_cloud_auth::credentials::{
    CacheableResource, Credentials, external_account, impersonated, service_account, user_account,
};
use model::{ResourceKey, plan::Action};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Cloud Audit Logs keep it.
const REASON: &str = "x-goog-request-reason";
/// For one call. What has not answered by then is looked into.
const TIMEOUT: Duration = Duration::from_secs(60);
/// For a connection, as for EC2.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Google's words for whoever asks too often, told with 403 or 429: <https://cloud.google.com/compute/api-quota#troubleshoot>
const TOO_FAST: [&str; 2] = ["rateLimitExceeded", "userRateLimitExceeded"];
/// There is no room for such a machine in its zone now: <https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability>
const CAPACITY: [&str; 3] =
    ["ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "RESOURCE_POOL_EXHAUSTED"];

/// Whether an error's code says that there is no room now, which passes.
pub(super) fn is_capacity(code: &str) -> bool {
    CAPACITY.contains(&code)
}

/// Whether what an error's code says passes: a want of room, or too many calls.
fn passes(code: &str) -> bool {
    is_capacity(code) || TOO_FAST.contains(&code)
}

/// Who acts in one project, in somebody's name.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    endpoint: String,
    headers: HeaderMap,
}

/// Google's answer to a call that it takes: it goes on by itself.
#[derive(Debug, Deserialize)]
struct Operation {
    name: Option<String>,
    error: Option<Errors>,
}

#[derive(Debug, Deserialize)]
struct Errors {
    #[serde(default)]
    errors: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    code: Option<String>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error: Refused,
}

#[derive(Debug, Deserialize)]
struct Refused {
    message: Option<String>,
    #[serde(default)]
    errors: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Allowed {
    #[serde(default)]
    permissions: Vec<String>,
}

impl Client {
    /// Reads the credentials that act in a project, and has a token made: both calls that follow are made with it.
    pub(super) async fn open(act: &ActProject, options: &gcp::Options, for_whom: &[String]) -> Result<Self, Failure> {
        let file = &act.credentials_file;
        let refused = |message: String| Failure {
            kind: FailureKind::Credentials,
            message: format!("{}: {message}", file.display()),
        };
        let read = tokio::fs::read(file).await.map_err(|error| refused(chain(&error)))?;
        let read: Value = serde_json::from_slice(&read).map_err(|error| refused(chain(&error)))?;
        let credentials = credentials(read).map_err(refused)?;
        let token = tokio::time::timeout(options.credentials_timeout, credentials.headers(Extensions::new())).await;
        let mut headers = match token {
            Ok(Ok(CacheableResource::New { data, .. })) => data,
            Ok(Ok(CacheableResource::NotModified)) => return Err(refused("its library gave no token".to_owned())),
            // Nobody has said no: it may come at the next try.
            Ok(Err(error)) if error.is_transient() => {
                return Err(Failure { kind: FailureKind::Unreachable, ..refused(chain(&error)) });
            }
            Ok(Err(error)) => return Err(refused(chain(&error))),
            Err(_) => {
                let seconds = options.credentials_timeout.as_secs_f32();
                // It may come at the next try.
                return Err(Failure { kind: FailureKind::TimedOut, ..refused(format!("no token within {seconds} s")) });
            }
        };
        headers.insert(REASON, reason(for_whom));
        // A call that has to open a connection of its own after all, since the one that was opened for it is gone, leaves a few seconds late at most.
        let once = reqwest::Client::builder().timeout(TIMEOUT).connect_timeout(CONNECT_TIMEOUT);
        let once = once.redirect(reqwest::redirect::Policy::none());
        let http = once.retry(reqwest::retry::never()).build();
        let http = http.map_err(|error| Failure { kind: FailureKind::Unreachable, message: chain(&error) })?;
        Ok(Self { http, endpoint: options.compute().to_owned(), headers })
    }

    fn url(&self, on: &ResourceKey, call: &str) -> String {
        let ResourceKey { account: project, location: zone, id: number, .. } = on;
        format!("{}/compute/v1/projects/{project}/zones/{zone}/instances/{number}/{call}", self.endpoint)
    }

    /// Asks whether it may do so to that machine. Google has no dry run: this is the next to it, and opens the way that the call takes.
    pub(super) async fn may(&self, action: Action, on: &ResourceKey) -> Called {
        let Some(verb) = verb(action) else { return unknown() };
        let permission = format!("compute.instances.{verb}");
        let request = self.http.post(self.url(on, "testIamPermissions")).headers(self.headers.clone());
        match sent(request.json(&json!({ "permissions": [permission] }))).await {
            Err(called) => called,
            Ok(body) => match serde_json::from_slice::<Allowed>(&body) {
                Ok(allowed) if allowed.permissions.contains(&permission) => Called::Accepted { request_id: None },
                Ok(_) => {
                    let why = format!("who acts does not have {permission} there");
                    Called::Rejected { why, request_id: None, for_now: false }
                }
                Err(error) => Called::Lost { why: chain(&error) },
            },
        }
    }

    /// Makes the call, if it can leave before the deadline. What disks of the host hold is never discarded, and the machine's own shutdown is never passed over. A call that comes
    /// twice with one `id` is one to Google.
    pub(super) async fn call(&self, action: Action, on: &ResourceKey, id: Uuid, deadline: Deadline) -> Called {
        let Some(verb) = verb(action) else { return unknown() };
        let request = self.http.post(self.url(on, verb)).query(&[("requestId", id.to_string())]);
        // Google asks for the length of what is not there, too.
        let request = request.headers(self.headers.clone()).header("content-length", "0");
        if !deadline.holds() {
            return Called::NotSent;
        }
        match sent(request).await {
            Err(called) => called,
            Ok(body) => match serde_json::from_slice::<Operation>(&body) {
                Ok(Operation { name, error }) => match error.and_then(|error| error.errors.into_iter().next()) {
                    None => Called::Accepted { request_id: name },
                    Some(fault) => rejected(fault, name),
                },
                Err(error) => Called::Lost { why: chain(&error) },
            },
        }
    }
}

/// Google's word for an action, in its path and in the permission that it needs.
fn verb(action: Action) -> Option<&'static str> {
    match action {
        Action::StopInstance => Some("stop"),
        Action::StartInstance => Some("start"),
        Action::HibernateInstance
        | Action::EndMember
        | Action::ReleaseAddress
        | Action::DeleteVolume
        | Action::TerminateJob => None,
    }
}

fn unknown() -> Called {
    let why = "nothing of Google Cloud's does that".to_owned();
    Called::Rejected { why, request_id: None, for_now: false }
}

fn rejected(fault: Fault, operation: Option<String>) -> Called {
    let code = fault.code.or(fault.reason).unwrap_or_default();
    let why = format!("{code}: {}", fault.message.unwrap_or_default());
    Called::Rejected { for_now: passes(&code), why, request_id: operation }
}

/// The body of an answer that says yes.
async fn sent(request: reqwest::RequestBuilder) -> Result<Vec<u8>, Called> {
    let lost = |error: reqwest::Error| Called::Lost { why: chain(&error.without_url()) };
    let answer = request.send().await.map_err(lost)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(lost)?;
    if status.is_success() { Ok(body.into()) } else { Err(refused(status, &body)) }
}

/// The service itself said so, and it was not its own fault: nothing was done. Anything else nobody knows, but for a want of room, which is told with 503. What came too fast for it, as well
/// as a want of room, passes.
fn refused(status: StatusCode, body: &[u8]) -> Called {
    let told = serde_json::from_slice::<Refusal>(body).ok().map(|told| told.error);
    let Some(Refused { message, errors }) = told else { return Called::Lost { why: format!("HTTP {status}") } };
    let code = errors.into_iter().find_map(|fault| fault.code.or(fault.reason)).unwrap_or_default();
    let why = format!("{code}: {}", message.unwrap_or_default());
    let passes = passes(&code) || status == StatusCode::TOO_MANY_REQUESTS;
    if passes || status.is_client_error() {
        Called::Rejected { for_now: passes, why, request_id: None }
    } else {
        Called::Lost { why }
    }
}

/// As Google's library reads them where the environment names them. Credentials that are the environment's own read, and do not act.
fn credentials(read: Value) -> Result<Credentials, String> {
    let kind = read.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let built = match kind.as_str() {
        "external_account" => external_account::Builder::new(read).build(),
        "impersonated_service_account" => impersonated::Builder::new(read).build(),
        "service_account" => service_account::Builder::new(read).build(),
        "authorized_user" => user_account::Builder::new(read).build(),
        other => return Err(format!("credentials of the type `{other}` are not known here")),
    };
    built.map_err(|error| chain(&error))
}

/// The people, as Cloud Audit Logs shall name them: as many as have room.
fn reason(people: &[String]) -> HeaderValue {
    let is_taken = |c: &char| c.is_ascii_graphic() || *c == ' ';
    let text: String = format!("Cloud Sweeper, for {}", people.join(",")).chars().filter(is_taken).take(200).collect();
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("Cloud Sweeper"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_of_room_passes_and_a_fault_of_googles_is_no_refusal() {
        let of = |status: u16, body: &str| refused(StatusCode::from_u16(status).expect("a status"), body.as_bytes());
        let told = |reason: &str| format!(r#"{{"error": {{"message": "no", "errors": [{{"reason": "{reason}"}}]}}}}"#);
        let rejected = |why: &str, for_now| Called::Rejected { why: why.to_owned(), request_id: None, for_now };
        assert_eq!(of(403, &told("forbidden")), rejected("forbidden: no", false));
        assert_eq!(of(429, &told("other")), rejected("other: no", true));
        assert_eq!(of(403, &told("rateLimitExceeded")), rejected("rateLimitExceeded: no", true));
        let full = "ZONE_RESOURCE_POOL_EXHAUSTED";
        assert_eq!(of(503, &told(full)), rejected(&format!("{full}: no"), true));
        assert!(matches!(of(503, &told("backendError")), Called::Lost { .. }));
        assert!(matches!(of(403, "<html>"), Called::Lost { .. }), "it was not Google who said so");
    }

    #[test]
    fn people_are_named_in_words_that_a_header_takes() {
        let of = |people: &[&str]| reason(&people.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["ada@example.com", "grace"]), "Cloud Sweeper, for ada@example.com,grace");
        assert_eq!(of(&["a\nb\u{e9}"]), "Cloud Sweeper, for ab");
        assert_eq!(of(&[&"x".repeat(400)]).len(), 200);
    }

    #[test]
    fn credentials_that_are_not_known_are_none() {
        assert!(credentials(json!({"type": "brand_new"})).is_err_and(|why| why.contains("`brand_new`")));
        assert!(credentials(json!({})).is_err());
    }

    #[test]
    fn nothing_but_a_stop_and_a_start_is_called() {
        let calls = [Action::StopInstance, Action::StartInstance, Action::HibernateInstance, Action::ReleaseAddress];
        assert_eq!(calls.map(verb), [Some("stop"), Some("start"), None, None]);
        assert_eq!([Action::DeleteVolume, Action::EndMember].map(verb), [None; 2]);
    }
}
