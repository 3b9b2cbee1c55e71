//! What is fetched, what is not, and what a failure costs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use heartbeat::{BootId, api::RULES_PATH};
use secrecy::SecretString;
use std::sync::Mutex;

const FILE: &str = "version = \"served\"\nbase = \"built-in\"\n";

#[derive(Default)]
struct Sweeper {
    requests: u32,
    answer: Option<StatusCode>,
    file: String,
}

type Shared = Arc<Mutex<Sweeper>>;

async fn send(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut sweeper = shared.lock().unwrap();
    sweeper.requests += 1;
    assert_eq!(headers[header::AUTHORIZATION], "Bearer token");
    assert!(headers.contains_key(header::IF_NONE_MATCH));
    sweeper.answer.map_or_else(|| sweeper.file.clone().into_response(), |status| status.into_response())
}

fn ack(file: &str) -> Ack {
    let rules = RulesOffer::File { version: "x".to_owned(), sha256: hex::encode(Sha256::digest(file)) };
    Ack {
        boot_id: BootId(uuid::Uuid::from_u128(1)),
        contiguous_sequence: 0,
        stored: 0,
        duplicates: 0,
        rules: Some(rules),
        question: None,
    }
}

struct Lab {
    sweeper: Shared,
    client: Client,
    rules_store: Arc<RulesStore>,
    follower: Follower,
    _state: tempfile::TempDir,
}

impl Lab {
    async fn new(file: &str) -> Self {
        let sweeper = Shared::new(Mutex::new(Sweeper { file: file.to_owned(), ..Sweeper::default() }));
        let router = Router::new().route(RULES_PATH, get(send)).with_state(Arc::clone(&sweeper));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let state = tempfile::tempdir().unwrap();
        let rules_store = Arc::new(RulesStore::start(None, state.path()));
        Self { sweeper, client, follower: Follower::new(Arc::clone(&rules_store)), rules_store, _state: state }
    }

    /// Hears an acknowledgement and follows it; the number of requests so far.
    async fn hear(&mut self, ack: &Ack) -> u32 {
        self.follower.hear(ack);
        self.follower.follow(&self.client, &SecretString::from("token")).await;
        self.sweeper.lock().unwrap().requests
    }
}

#[tokio::test]
async fn an_offer_is_fetched_once() {
    let mut lab = Lab::new(FILE).await;
    assert_eq!(lab.hear(&Ack { rules: None, ..ack(FILE) }).await, 0);
    assert_eq!(lab.hear(&ack(FILE)).await, 1);
    assert_eq!(lab.rules_store.rules().version, "served");
    assert_eq!(lab.hear(&ack(FILE)).await, 1);
}

#[tokio::test]
async fn a_file_that_is_refused_is_fetched_once_and_changes_nothing() {
    let bad = "version = \"x\"\nnmae = 1\n";
    let mut lab = Lab::new(bad).await;
    assert_eq!(lab.hear(&ack(bad)).await, 1);
    assert_eq!((lab.rules_store.rules().version.as_str(), lab.rules_store.refused()), ("built-in-1", 1));
    assert_eq!(lab.hear(&ack(bad)).await, 1);
}

#[tokio::test]
async fn a_file_that_was_not_offered_is_not_taken() {
    let mut lab = Lab::new(FILE).await;
    assert_eq!(lab.hear(&ack("another")).await, 1);
    assert_eq!((lab.rules_store.rules().version.as_str(), lab.rules_store.refused()), ("built-in-1", 0));
}

#[tokio::test]
async fn a_sweeper_that_fails_is_asked_again_a_minute_later() {
    let mut lab = Lab::new(FILE).await;
    lab.sweeper.lock().unwrap().answer = Some(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(lab.hear(&ack(FILE)).await, 1);
    assert_eq!(lab.hear(&ack(FILE)).await, 1, "not at once");
    lab.sweeper.lock().unwrap().answer = None;
    lab.follower.not_before = Some(Instant::now());
    assert_eq!(lab.hear(&ack(FILE)).await, 2);
    assert_eq!(lab.rules_store.rules().version, "served");
}
