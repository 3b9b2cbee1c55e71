//! The interface over a real SQLite database, called in-process by typed callers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
mod interactions;
mod limits;
mod rules;

use super::{AppState, FLEET, OPERATOR, Settings, TokenError, establish, router};
use crate::{
    config::{Config, IdentityConfig, SweepConfig},
    identity::evidence::Verifier,
    ingest::Ingest,
    interactions::Interactions,
    inventory::Scope,
    rules::RulesStore,
    store::Store,
    sweep::Timetable,
    verdict::{Policy, StatePolicy},
};
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode, header},
};
use heartbeat::{
    NodeId,
    api::{
        Ack, CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH, JOIN_PATH, JoinResponse, PROBLEM_TYPE, Problem,
        RULES_PATH, RulesOffer,
    },
    wire,
};
use jiff::Timestamp;
use model::Provider;
use std::{os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tower::ServiceExt as _;

const NODE: &str = "aws:123456789012:eu-central-1:i-0123456789abcdef0";
const OTHER: &str = "host:0123456789abcdef0123456789abcdef";
const BOOT: &str = "6f1c1c1e-0000-4000-8000-000000000001";

struct TestApp {
    directory: TempDir,
    store: Store,
    state: AppState,
    router: Router,
}

impl TestApp {
    async fn new() -> Self {
        Self::with_identity(IdentityConfig::default()).await
    }

    async fn with_identity(identity: IdentityConfig) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), None, identity).await
    }

    async fn with_rules(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rules.toml");
        std::fs::write(&file, text).unwrap();
        let rules_store = RulesStore::open(&file).unwrap();
        Self::in_folder(directory, Some(Arc::new(rules_store)), IdentityConfig::default()).await
    }

    async fn in_folder(directory: TempDir, rules: Option<Arc<RulesStore>>, identity: IdentityConfig) -> Self {
        let store = Store::connect(&format!("sqlite://{}/s.db?mode=rwc", directory.path().display())).await.unwrap();
        store.migrate().await.unwrap();
        let timetable = Arc::new(Timetable::new(&SweepConfig::default()).unwrap());
        let verifier = Verifier::new(identity.verifier()).unwrap();
        let ingest = Ingest::new(store.clone(), Duration::from_secs(300), StatePolicy::new(Policy::default()));
        let slack = "[slack]\ntoken = \"xoxb-1-2-abc\"\nchannel = \"C1\"\nsigning_secret = \"8f742231b10e8888abcd99aaabbb85a5\"";
        let interactions = Interactions::new(store.clone(), &toml::from_str(slack).unwrap()).unwrap().map(Arc::new);
        let settings = Settings::of(&Config { identity, ..Config::default() });
        let state = AppState::new(store.clone(), ingest, rules, timetable, settings, verifier, interactions);
        let app = Self { router: router(state.clone()), state, store, directory };
        establish(&app.store, &FLEET, &app.join_token_file()).await.unwrap();
        establish(&app.store, &OPERATOR, &app.operator_token_file()).await.unwrap();
        app
    }

    fn join_token_file(&self) -> PathBuf {
        self.directory.path().join("join-token")
    }

    fn operator_token_file(&self) -> PathBuf {
        self.directory.path().join("operator-token")
    }

    fn operator_token(&self) -> String {
        std::fs::read_to_string(self.operator_token_file()).unwrap().trim().to_owned()
    }

    fn join_token(&self) -> String {
        std::fs::read_to_string(self.join_token_file()).unwrap().trim().to_owned()
    }

    async fn call(&self, request: Request<Body>) -> (StatusCode, String, Vec<u8>) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert!(response.headers().contains_key("x-request-id"));
        let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec();
        (status, kind.unwrap_or_default(), body)
    }

    async fn refused(&self, request: Request<Body>) -> Problem {
        let (status, kind, body) = self.call(request).await;
        assert_eq!(kind, PROBLEM_TYPE);
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem.status, status.as_u16());
        problem
    }

    async fn join(&self, node: &str) -> JoinResponse {
        let (status, _, body) = self.call(join_request(&self.join_token(), join_body(node))).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    async fn send(&self, token: &str, envelope: &wire::Envelope) -> Ack {
        let (status, _, body) = self.call(post_envelope(token, heartbeat::encode(envelope).unwrap())).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    async fn stored(&self, node: &str) -> usize {
        let node: NodeId = node.parse().unwrap();
        self.store.heartbeats(&node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap().len()
    }
}

fn join_body(node: &str) -> String {
    serde_json::json!({ "node_id": node, "boot_id": BOOT, "hostname": "h", "agent_version": "0.1.0" }).to_string()
}

fn join_request(token: &str, body: String) -> Request<Body> {
    let request = Request::post(JOIN_PATH).header(header::AUTHORIZATION, format!("Bearer {token}"));
    request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body)).unwrap()
}

fn post_envelope(token: &str, body: Vec<u8>) -> Request<Body> {
    let request = Request::post(HEARTBEATS_PATH).header(header::AUTHORIZATION, format!("Bearer {token}"));
    let request = request.header(header::CONTENT_TYPE, CONTENT_TYPE).header(header::CONTENT_ENCODING, CONTENT_ENCODING);
    request.body(Body::from(body)).unwrap()
}

fn envelope(node: &str, sequences: &[u64]) -> wire::Envelope {
    let now = Timestamp::now().as_millisecond();
    let beat = |sequence: u64| wire::Heartbeat {
        sequence,
        interval: Some(wire::Interval {
            start_unix_ms: now - 30_000,
            end_unix_ms: now,
            start_boottime_ns: sequence * 30_000_000_000,
            end_boottime_ns: (sequence + 1) * 30_000_000_000,
            observed_since_unix_ms: now - 30_000,
            counters_since_boottime_ns: 0,
        }),
        host: Some(wire::Host::default()),
        counters: Some(wire::HostCounters::default()),
        coverage: Some(wire::Coverage::default()),
        ..wire::Heartbeat::default()
    };
    wire::Envelope {
        version: heartbeat::envelope::VERSION,
        node_id: node.into(),
        boot_id: BOOT.into(),
        oldest_retained_sequence: sequences.iter().copied().min().unwrap_or(0),
        sent_unix_ms: now,
        heartbeats: sequences.iter().map(|sequence| beat(*sequence)).collect(),
    }
}

#[path = "join_tests.rs"]
mod joins;

#[tokio::test]
async fn a_node_joins_with_the_join_token_and_sends_with_its_own() {
    let app = TestApp::new().await;
    let joined = app.join(NODE).await;
    assert_eq!(joined.last_sequence, 0);
    let ack = app.send(&joined.node_token, &envelope(NODE, &[1, 2])).await;
    assert_eq!((ack.contiguous_sequence, ack.stored, ack.duplicates), (2, 2, 0));
    let ack = app.send(&joined.node_token, &envelope(NODE, &[2, 3])).await;
    assert_eq!((ack.contiguous_sequence, ack.stored, ack.duplicates), (3, 1, 1));
    assert_eq!(app.stored(NODE).await, 3);
    let nodes = app.store.nodes().await.unwrap();
    assert!(nodes.len() == 1 && nodes[0].last_seen_at.is_some(), "{nodes:?}");
}

#[tokio::test]
async fn joining_again_voids_the_earlier_token_and_tells_where_to_go_on() {
    let app = TestApp::new().await;
    let first = app.join(NODE).await;
    app.send(&first.node_token, &envelope(NODE, &[1, 2, 3])).await;
    let second = app.join(NODE).await;
    assert_eq!(second.last_sequence, 3);
    let body = heartbeat::encode(&envelope(NODE, &[4])).unwrap();
    // The token is remembered: whatever comes with it now is not the node's word, not even what cannot be read.
    for body in [Vec::new(), body.clone(), body.clone()] {
        app.refused(post_envelope(&first.node_token, body)).await;
        assert_eq!(app.store.node(&NODE.parse().unwrap()).await.unwrap().unwrap().refused, None);
    }
    assert_eq!(app.refused(post_envelope(&first.node_token, body.clone())).await.kind, "unauthenticated");
    assert_eq!(app.stored(NODE).await, 3);
    assert_eq!(app.call(post_envelope(&second.node_token, body)).await.0, StatusCode::OK);
}

#[tokio::test]
async fn without_the_right_token_nothing_is_read() {
    let app = TestApp::new().await;
    let node = app.join(NODE).await.node_token;
    let body = heartbeat::encode(&envelope(NODE, &[1])).unwrap();
    let bare = Request::post(HEARTBEATS_PATH).body(Body::from(body.clone())).unwrap();
    for request in [
        bare,
        post_envelope("csn_0000000000000000000000000000000000000000000000000000000000000000", body.clone()),
        post_envelope(&app.join_token(), body),
        join_request(&node, join_body(OTHER)),
        join_request("", join_body(OTHER)),
    ] {
        let problem = app.refused(request).await;
        assert_eq!((problem.status, problem.kind.as_str()), (401, "unauthenticated"));
    }
    assert_eq!((app.stored(NODE).await, app.store.nodes().await.unwrap().len()), (0, 1));
}

#[tokio::test]
async fn bodies_that_cannot_be_true_are_refused_by_name_and_leave_no_trace() {
    let app = TestApp::new().await;
    app.join(OTHER).await;
    let token = app.join(NODE).await.node_token;
    let good = envelope(NODE, &[1]);
    let whole = heartbeat::encode(&good).unwrap();
    let encode = |change: &dyn Fn(&mut wire::Envelope)| {
        let mut changed = good.clone();
        change(&mut changed);
        heartbeat::encode(&changed).unwrap()
    };
    for (body, status, kind) in [
        (whole[..whole.len() / 2].to_vec(), 400, "malformed"),
        (b"{}".to_vec(), 400, "malformed"),
        (Vec::new(), 400, "malformed"),
        (vec![0; heartbeat::envelope::MAX_BODY_BYTES + 1], 413, "too_large"),
        (zstd::encode_all(&vec![0_u8; 5 * 1024 * 1024][..], 3).unwrap(), 413, "too_large"),
        (encode(&|envelope| envelope.version = 2), 400, "unsupported_version"),
        (encode(&|envelope| envelope.node_id = OTHER.into()), 403, "forbidden_node"),
        (encode(&|envelope| envelope.sent_unix_ms += 3_600_000), 422, "clock_skew"),
        (encode(&|envelope| envelope.sent_unix_ms -= 3_600_000), 422, "clock_skew"),
        (encode(&|envelope| envelope.heartbeats[0].sequence = 0), 422, "invalid"),
        (encode(&|envelope| envelope.heartbeats.clear()), 422, "invalid"),
    ] {
        let problem = app.refused(post_envelope(&token, body)).await;
        assert_eq!((problem.status, problem.kind.as_str()), (status, kind), "{}", problem.detail);
    }
    let mut request = post_envelope(&token, whole);
    request.headers_mut().remove(header::CONTENT_ENCODING);
    assert_eq!(app.refused(request).await.kind, "unsupported_media_type");
    assert_eq!((app.stored(NODE).await, app.stored(OTHER).await), (0, 0));
}

#[tokio::test]
async fn join_requests_that_make_no_sense_are_refused() {
    let app = TestApp::new().await;
    let long =
        serde_json::json!({ "node_id": NODE, "boot_id": BOOT, "hostname": "h".repeat(2_000), "agent_version": "1" });
    for (body, status, kind) in [
        ("{".to_owned(), 400, "malformed"),
        (join_body("azure:1:2:3"), 400, "malformed"),
        (long.to_string(), 422, "invalid"),
        (" ".repeat(20_000), 413, "too_large"),
    ] {
        let problem = app.refused(join_request(&app.join_token(), body)).await;
        assert_eq!((problem.status, problem.kind.as_str()), (status, kind), "{}", problem.detail);
    }
    assert!(app.store.nodes().await.unwrap().is_empty());
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist_are_problems_too() {
    let app = TestApp::new().await;
    let nowhere = app.refused(Request::get("/v1/nothing").body(Body::empty()).unwrap()).await;
    assert_eq!((nowhere.status, nowhere.kind.as_str()), (404, "not_found"));
    let request = Request::builder().method(Method::DELETE).uri(HEARTBEATS_PATH).body(Body::empty()).unwrap();
    let wrong = app.refused(request).await;
    assert_eq!((wrong.status, wrong.kind.as_str()), (405, "method_not_allowed"));
}

#[tokio::test]
async fn health_and_readiness_are_told_apart() {
    let app = TestApp::new().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(app.call(Request::get(path).body(Body::empty()).unwrap()).await.0, StatusCode::OK);
    }
    app.store.connection().clone().close().await.unwrap();
    assert_eq!(app.call(Request::get("/healthz").body(Body::empty()).unwrap()).await.0, StatusCode::OK);
    let problem = app.refused(Request::get("/readyz").body(Body::empty()).unwrap()).await;
    assert_eq!((problem.status, problem.kind.as_str()), (503, "unavailable"));
    assert_eq!(problem.detail, "The database does not answer; the sweeper's log says why.");
}

#[tokio::test]
async fn the_operator_token_is_private_and_never_what_agents_hold() {
    let app = TestApp::new().await;
    let file = app.operator_token_file();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(app.operator_token().starts_with("csp_") && app.operator_token() != app.join_token());
    // It admits no node.
    assert_eq!(app.refused(join_request(&app.operator_token(), join_body(NODE))).await.kind, "unauthenticated");
    std::fs::write(&file, app.join_token()).unwrap();
    let shared = establish(&app.store, &OPERATOR, &file).await;
    assert!(matches!(shared, Err(TokenError::Shared { .. })), "{shared:?}");
}

#[tokio::test]
async fn the_join_token_is_private_stays_the_same_and_can_be_changed_in_its_file() {
    let app = TestApp::new().await;
    let file = app.join_token_file();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = app.join_token();
    assert!(first.starts_with("csj_") && first.len() == 68, "{}", first.len());

    establish(&app.store, &FLEET, &file).await.unwrap();
    assert_eq!(app.join_token(), first);

    let own = "a-token-that-a-person-has-chosen-themselves";
    std::fs::write(&file, own).unwrap();
    establish(&app.store, &FLEET, &file).await.unwrap();
    assert_eq!(app.refused(join_request(&first, join_body(NODE))).await.kind, "unauthenticated");
    assert_eq!(app.join(NODE).await.last_sequence, 0);

    // Another sweeper over the same database: the token holds, and no second file appears.
    let elsewhere = app.directory.path().join("elsewhere");
    establish(&app.store, &FLEET, &elsewhere).await.unwrap();
    assert!(!elsewhere.exists());
    assert_eq!(app.join(NODE).await.last_sequence, 0);

    std::fs::write(&file, "short").unwrap();
    assert!(establish(&app.store, &FLEET, &file).await.is_err());
}

#[tokio::test]
async fn scopes_and_metrics_are_for_who_holds_the_operator_token_and_not_for_agents() {
    let app = TestApp::new().await;
    let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
    app.store.register_scopes(&[scope].into(), Duration::from_secs(120)).await.unwrap();
    let get = |path: &str, token: &str| {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
        request.body(Body::empty()).unwrap()
    };
    let node = app.join(NODE).await.node_token;
    for path in ["/v1/scopes", "/v1/costs", "/v1/recommendations", "/metrics"] {
        for token in [&node, &app.join_token(), &format!("{}0", app.operator_token())] {
            assert_eq!(app.refused(get(path, token)).await.kind, "unauthenticated", "{path}");
        }
        let without = app.refused(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(without.kind, "unauthenticated", "{path}");
        assert_eq!(app.call(get(path, &app.operator_token())).await.0, StatusCode::OK, "{path}");
    }
    let (status, _, body) = app.call(get("/v1/scopes", &app.operator_token())).await;
    assert_eq!(status, StatusCode::OK);
    let scopes: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(scopes[0]["region"], "eu-central-1");
    // What is not known is null and never a zero or a `false`.
    for unknown in ["swept_for", "complete", "last_complete_age_s", "listed", "failed", "swept_by"] {
        assert!(scopes[0][unknown].is_null(), "{unknown}: {scopes}");
    }
    assert_eq!((&scopes[1]["provider"], scopes[1]["account"].is_null()), (&"none".into(), true));
}
