//! The exporter against a stand-in that keeps to the contract and can be told to misbehave.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    config::{IdentityChoice, Surroundings},
    spool::{Limits, Spool},
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use heartbeat::api::{
    Ack, CHALLENGE_PATH, Challenge, HEARTBEATS_PATH, JOIN_PATH, JoinRequest, JoinResponse, PROBLEM_TYPE, Problem,
    SIGNATURE_HEADER,
};
use secrecy::SecretString;
use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::Mutex,
};

/// What the stand-in knows and what it will answer next.
#[derive(Default)]
struct Sweeper {
    /// Sequence → how often it arrived.
    arrived: BTreeMap<u64, u32>,
    contiguous: u64,
    joins: u32,
    /// Joins that showed a join secret, taken or not.
    secrets: u32,
    /// The key that the node is bound to.
    bound: Option<String>,
    /// It is from before there were keys.
    is_old: bool,
    /// Of the tokens that it gives.
    lifetime_s: Option<u64>,
    token: String,
    /// Answers before it behaves again.
    replies: VecDeque<Reply>,
    /// Never acceptable.
    poison: Option<u64>,
    /// What ends later comes from the future.
    now_unix_ms: Option<i64>,
    /// Sequences of each envelope that was taken.
    envelopes: Vec<Vec<u64>>,
}

#[derive(Clone, Copy)]
enum Reply {
    Status(u16, Option<&'static str>),
    RetryAfter(&'static str),
    /// Says that it stored one more than it was sent.
    Miscounts,
    /// Stores and then fails to say so.
    ForgetsToAnswer,
}

type Shared = Arc<Mutex<Sweeper>>;

fn problem(status: u16, kind: &str) -> Response {
    let body = Problem { kind: kind.to_owned(), status, title: String::new(), detail: "because".to_owned() };
    let body = serde_json::to_string(&body).unwrap();
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, PROBLEM_TYPE)], body).into_response()
}

async fn challenge(State(shared): State<Shared>) -> Response {
    if shared.lock().unwrap().is_old {
        return problem(404, "not_found");
    }
    Json(Challenge { challenge: "of-this-join".to_owned(), expires_in_s: 120, evidence: Vec::new() }).into_response()
}

async fn join(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let mut sweeper = shared.lock().unwrap();
    let request: JoinRequest = serde_json::from_slice(&body).unwrap();
    let secret = headers.get(header::AUTHORIZATION).map(|secret| secret.as_bytes() == b"Bearer let-me-in");
    sweeper.secrets += u32::from(secret.is_some());
    let key = request.proof.map(|proof| {
        assert_eq!(proof.challenge, "of-this-join");
        let signature = hex::decode(headers[SIGNATURE_HEADER].as_bytes()).unwrap();
        let key = hex::decode(&proof.public_key).unwrap();
        let key = aws_lc_rs::signature::UnparsedPublicKey::new(&aws_lc_rs::signature::ED25519, key);
        key.verify(&heartbeat::attestation::signed_text(&body), &signature).unwrap();
        proof.public_key
    });
    let is_bound = key.is_some() && sweeper.bound == key;
    match secret {
        None if !is_bound => return problem(401, "join_secret_required"),
        Some(false) => return problem(401, "unauthenticated"),
        _ => sweeper.bound = key,
    }
    sweeper.joins += 1;
    sweeper.token = format!("token-{}", sweeper.joins);
    let response = JoinResponse {
        node_token: sweeper.token.clone(),
        expires_in_s: sweeper.lifetime_s,
        last_sequence: sweeper.contiguous,
    };
    Json(response).into_response()
}

async fn heartbeats(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let mut sweeper = shared.lock().unwrap();
    if headers[header::AUTHORIZATION] != format!("Bearer {}", sweeper.token) {
        return problem(401, "unauthenticated");
    }
    let reply = sweeper.replies.pop_front();
    match reply {
        Some(Reply::Status(status, Some(kind))) => return problem(status, kind),
        Some(Reply::Status(status, None)) => return StatusCode::from_u16(status).unwrap().into_response(),
        Some(Reply::RetryAfter(value)) => {
            return (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, value)]).into_response();
        }
        Some(Reply::ForgetsToAnswer | Reply::Miscounts) | None => {}
    }
    let envelope = heartbeat::decode(&body).unwrap();
    let sequences = envelope.heartbeats.iter().map(|heartbeat| heartbeat.sequence).collect::<Vec<_>>();
    if sweeper.poison.is_some_and(|poison| sequences.contains(&poison)) {
        return problem(422, "invalid");
    }
    let ends = || envelope.heartbeats.iter().filter_map(|heartbeat| Some(heartbeat.interval.as_ref()?.end_unix_ms));
    if sweeper.now_unix_ms.is_some_and(|now| ends().any(|end| end > now)) {
        return problem(422, "clock_skew");
    }
    sweeper.envelopes.push(sequences.clone());
    let mut ack = Ack {
        boot_id: envelope.boot_id,
        contiguous_sequence: 0,
        stored: 0,
        duplicates: 0,
        rules: None,
        question: None,
    };
    for sequence in sequences {
        let times = sweeper.arrived.entry(sequence).or_default();
        *times += 1;
        if *times == 1 { ack.stored += 1 } else { ack.duplicates += 1 }
    }
    sweeper.contiguous = sweeper.contiguous.max(envelope.oldest_retained_sequence - 1);
    while sweeper.arrived.contains_key(&(sweeper.contiguous + 1)) {
        sweeper.contiguous += 1;
    }
    ack.contiguous_sequence = sweeper.contiguous;
    if matches!(reply, Some(Reply::ForgetsToAnswer)) {
        return StatusCode::GATEWAY_TIMEOUT.into_response();
    }
    if matches!(reply, Some(Reply::Miscounts)) {
        ack.stored += 1;
    }
    Json(ack).into_response()
}

struct Lab {
    sweeper: Shared,
    queue: Arc<Queue>,
    exporter: Exporter,
    directory: tempfile::TempDir,
    url: String,
}

fn boot() -> BootId {
    BootId(uuid::Uuid::from_u128(1))
}

fn node_id() -> NodeId {
    "host:0123456789abcdef0123456789abcdef".parse().unwrap()
}

fn exporter(directory: &Path, url: &str, join_token: &str) -> (Arc<Queue>, Exporter) {
    let limits = Limits { max_bytes: 1 << 30, max_age: Duration::from_secs(3600) };
    let state = Arc::new(StateDir::open(directory).unwrap());
    let queue = Arc::new(Queue::new(Spool::open(&state.spool(), &node_id(), boot(), limits).unwrap()));
    let node = Node {
        node_id: node_id(),
        boot_id: boot(),
        hostname: "test".to_owned(),
        join_token: Some(JoinToken::Text(SecretString::from(join_token))),
        metadata: identity::Settings::new(
            IdentityChoice::Host,
            &Surroundings::default(),
            directory,
            identity::machine::Keep::No,
        ),
    };
    let backoff = Backoff::for_interval(Duration::from_secs(30));
    let client = Client::new(url).unwrap();
    let rules_store = Arc::new(RulesStore::start(None, directory));
    let exporter = Exporter::new(client, node, state, Arc::clone(&queue), Arc::default(), rules_store, backoff);
    (queue, exporter)
}

impl Lab {
    async fn new() -> Self {
        let sweeper = Shared::default();
        let router = Router::new()
            .route(CHALLENGE_PATH, post(challenge))
            .route(JOIN_PATH, post(join))
            .route(HEARTBEATS_PATH, post(heartbeats))
            .with_state(Arc::clone(&sweeper));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let directory = tempfile::tempdir().unwrap();
        let (queue, exporter) = exporter(directory.path(), &url, "let-me-in");
        Self { sweeper, queue, exporter, directory, url }
    }

    /// The agent starts anew over the same state.
    fn restarted(self, join_token: &str) -> Self {
        let Self { sweeper, directory, url, queue, exporter: ended } = self;
        drop((queue, ended));
        let (queue, exporter) = exporter(directory.path(), &url, join_token);
        Self { sweeper, queue, exporter, directory, url }
    }

    async fn joined() -> Self {
        let mut lab = Self::new().await;
        assert_eq!(lab.exporter.step().await, Step::Progress);
        lab
    }

    fn push(&self, count: u64) {
        self.push_that_end_at(count, 2);
    }

    fn push_that_end_at(&self, count: u64, end_unix_ms: i64) {
        for number in 0..count {
            let interval = wire::Interval {
                start_unix_ms: 1,
                end_unix_ms,
                start_boottime_ns: number,
                end_boottime_ns: number + 1,
                ..wire::Interval::default()
            };
            let heartbeat = wire::Heartbeat {
                interval: Some(interval),
                host: Some(wire::Host::default()),
                counters: Some(wire::HostCounters::default()),
                coverage: Some(wire::Coverage::default()),
                ..wire::Heartbeat::default()
            };
            self.queue.push(heartbeat);
        }
    }

    async fn drain(&mut self) {
        while self.exporter.step().await != Step::Idle {}
    }

    fn arrived(&self) -> Vec<(u64, u32)> {
        self.sweeper.lock().unwrap().arrived.clone().into_iter().collect()
    }

    fn reply(&self, reply: Reply) {
        self.sweeper.lock().unwrap().replies.push_back(reply);
    }
}

fn once_each(sequences: impl IntoIterator<Item = u64>) -> Vec<(u64, u32)> {
    sequences.into_iter().map(|sequence| (sequence, 1)).collect()
}

#[tokio::test]
async fn a_node_joins_once_and_its_heartbeats_arrive_once() {
    let mut lab = Lab::new().await;
    lab.push(3);
    assert_eq!(lab.queue.stats().waiting, 0, "before the join no sequence is known, so nothing is kept");
    assert_eq!(lab.exporter.step().await, Step::Progress);
    lab.push(3);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=3));
    assert_eq!(lab.queue.stats().waiting, 0);
    // The agent starts anew: the token still holds, the sequence goes on.
    let mut lab = lab.restarted("another token");
    lab.push(1);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=4));
    assert_eq!(lab.sweeper.lock().unwrap().joins, 1);
}

#[tokio::test]
async fn an_answer_that_was_lost_leads_to_a_duplicate_and_not_to_a_loss() {
    let mut lab = Lab::joined().await;
    lab.push(2);
    lab.reply(Reply::ForgetsToAnswer);
    assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    assert_eq!(lab.queue.stats().waiting, 2);
    lab.drain().await;
    assert_eq!(lab.arrived(), [(1, 1), (2, 2)], "the newest alone was sent first, and once more");
}

#[tokio::test]
async fn an_acknowledgement_of_another_number_acknowledges_nothing() {
    let mut lab = Lab::joined().await;
    lab.push(2);
    lab.reply(Reply::Miscounts);
    assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    assert_eq!(lab.queue.stats().waiting, 2);
}

#[tokio::test]
async fn after_an_outage_the_present_comes_first_and_alone_and_the_past_in_growing_batches() {
    let mut lab = Lab::joined().await;
    lab.push(10);
    lab.drain().await;
    lab.reply(Reply::Status(503, None));
    lab.push(20);
    assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    lab.sweeper.lock().unwrap().envelopes.clear();
    assert_eq!(lab.exporter.step().await, Step::Progress);
    assert_eq!(lab.sweeper.lock().unwrap().envelopes, [[30]]);
    // What is measured while the past is made good comes before the rest of it.
    lab.push(1);
    lab.drain().await;
    let envelopes = lab.sweeper.lock().unwrap().envelopes.clone();
    let due: [Vec<u64>; 5] = [vec![30], vec![29, 31], (25..=28).collect(), (17..=24).collect(), (11..=16).collect()];
    assert_eq!(envelopes, due);
    assert_eq!(lab.arrived(), once_each(1..=31));
    assert_eq!(lab.sweeper.lock().unwrap().contiguous, 31);
}

#[tokio::test]
async fn what_may_pass_is_waited_for_and_nothing_is_lost() {
    let mut lab = Lab::joined().await;
    lab.push(2);
    for reply in [
        Reply::Status(500, None),
        Reply::Status(503, None),
        Reply::Status(404, None),
        Reply::Status(403, None),
        Reply::Status(408, None),
        Reply::Status(422, Some("clock_skew")),
        Reply::Status(400, Some("unsupported_version")),
        Reply::Status(200, None),
    ] {
        lab.reply(reply);
        assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    }
    lab.reply(Reply::RetryAfter("17"));
    let Step::Wait(wait) = lab.exporter.step().await else { panic!("it should wait") };
    assert!(wait >= Duration::from_secs(17), "{wait:?}");
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    assert_eq!(lab.queue.stats().rejected, 0);
}

/// What a proxy in between says is not the sweeper's word.
#[tokio::test]
async fn many_go_in_bounded_envelopes() {
    let mut lab = Lab::joined().await;
    lab.push(600);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=600));
    let envelopes = lab.sweeper.lock().unwrap().envelopes.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(envelopes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 89]);
}

#[tokio::test]
async fn an_absent_sweeper_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let (_, mut alone) = exporter(directory.path(), "http://127.0.0.1:1", "let-me-in");
    assert!(matches!(alone.step().await, Step::Wait(_)));
}

#[tokio::test]
async fn what_was_measured_under_a_clock_that_ran_ahead_does_not_block_the_rest() {
    let mut lab = Lab::joined().await;
    let now = jiff::Timestamp::now().as_millisecond();
    lab.sweeper.lock().unwrap().now_unix_ms = Some(now);
    lab.push_that_end_at(2, now + 86_400_000);
    lab.push(2);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(3..=4));
    assert_eq!(lab.queue.stats().rejected, 2);
    // With every interval in the past it is the present clock that is off, and that can be waited out.
    lab.push(1);
    lab.reply(Reply::Status(422, Some("clock_skew")));
    assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(3..=5));
}

#[path = "join_tests.rs"]
mod joins;
#[path = "refusal_tests.rs"]
mod refusals;
