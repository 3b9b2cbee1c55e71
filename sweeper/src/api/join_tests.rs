//! Who is admitted as which node, over a real database, with real keys.

use super::*;
use crate::{
    identity::Attestation,
    store::{Doer, TokenHash},
};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use heartbeat::{
    api::{CHALLENGE_PATH, Challenge, JoinRequest, SIGNATURE_HEADER},
    attestation::{Proof, signed_text},
};

const SWEEPER: &str = "https://sweeper.example.com";

fn root() -> Doer {
    Doer { who: "root@sweeper-1".to_owned(), way: "command" }
}

/// A join that can be changed before it is sent.
struct Join {
    pair: Ed25519KeyPair,
    request: JoinRequest,
    secret: Option<String>,
}

impl Join {
    async fn new(app: &TestApp, node: &str, secret: Option<&str>) -> Self {
        Self::by(app, Ed25519KeyPair::generate().unwrap(), node, secret).await
    }

    async fn by(app: &TestApp, pair: Ed25519KeyPair, node: &str, secret: Option<&str>) -> Self {
        let proof = Proof {
            public_key: hex::encode(pair.public_key()),
            challenge: app.challenge(node).await,
            audience: SWEEPER.into(),
            evidence: None,
        };
        let request = JoinRequest {
            node_id: node.parse().unwrap(),
            boot_id: BOOT.parse().unwrap(),
            hostname: "h".into(),
            agent_version: "0.1.0".into(),
            proof: Some(proof),
        };
        Self { pair, request, secret: secret.map(str::to_owned) }
    }

    fn changed(mut self, change: impl FnOnce(&mut Proof)) -> Self {
        change(self.request.proof.as_mut().unwrap());
        self
    }

    fn signed_by(&self, pair: &Ed25519KeyPair) -> Request<Body> {
        let body = serde_json::to_vec(&self.request).unwrap();
        let signature = hex::encode(pair.sign(&signed_text(&body)));
        let request = Request::post(JOIN_PATH).header(header::CONTENT_TYPE, "application/json");
        let request = request.header(SIGNATURE_HEADER, signature);
        let bearer = self.secret.iter().map(|secret| format!("Bearer {secret}"));
        bearer.fold(request, |request, value| request.header(header::AUTHORIZATION, value)).body(body.into()).unwrap()
    }

    fn request(&self) -> Request<Body> {
        self.signed_by(&self.pair)
    }
}

impl TestApp {
    async fn challenge(&self, node: &str) -> String {
        let request = Request::post(CHALLENGE_PATH).header(header::CONTENT_TYPE, "application/json");
        let body = serde_json::json!({ "node_id": node }).to_string();
        let (status, _, body) = self.call(request.body(body.into()).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice::<Challenge>(&body).unwrap().challenge
    }

    async fn joined(&self, join: &Join) -> JoinResponse {
        let (status, _, body) = self.call(join.request()).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    async fn node(&self, node: &str) -> crate::identity::Node {
        self.store.node(&node.parse().unwrap()).await.unwrap().unwrap()
    }

    async fn works(&self, token: &str, sequence: u64) -> bool {
        let body = heartbeat::encode(&envelope(NODE, &[sequence])).unwrap();
        self.call(post_envelope(token, body)).await.0 == StatusCode::OK
    }

    async fn expire_tokens(&self) {
        use sea_orm::ConnectionTrait as _;
        let expire = "UPDATE node_tokens SET expires_unix_ms = 1; UPDATE join_tokens SET expires_unix_ms = 1";
        self.store.connection().execute_unprepared(expire).await.unwrap();
    }

    async fn join_token_for(&self, node: Option<&str>) -> String {
        let token = super::super::join_token().unwrap();
        let node = node.map(|node| node.parse().unwrap());
        self.store
            .create_join_token(&TokenHash::of(&token), node.as_ref(), Duration::from_secs(60), &root())
            .await
            .unwrap();
        token
    }
}

#[tokio::test]
async fn the_first_join_binds_the_key_and_the_key_alone_renews_the_token() {
    let app = TestApp::new().await;
    let first = Join::new(&app, NODE, Some(&app.join_token())).await;
    let joined = app.joined(&first).await;
    assert_eq!(joined.expires_in_s, Some(3_600));
    let node = app.node(NODE).await;
    assert_eq!((node.attestation, node.disputed), (Attestation::FleetToken, None));
    assert_eq!(node.binding.unwrap().public_key, hex::encode(first.pair.public_key()));

    let again = app.joined(&Join::by(&app, first.pair, NODE, None).await).await;
    for (token, sequence) in [(&joined.node_token, 1), (&again.node_token, 2)] {
        assert!(app.works(token, sequence).await, "the earlier token works until it expires");
    }
    app.expire_tokens().await;
    for token in [&joined.node_token, &again.node_token] {
        assert!(!app.works(token, 3).await, "by the database's clock it has expired");
    }
    assert!(app.store.delete_expired_tokens().await.unwrap() >= 2);
    assert!(!app.works(&again.node_token, 3).await, "a token that is forgotten is void, too");
}

#[tokio::test]
async fn a_stolen_fleet_token_takes_over_no_node_and_makes_it_disputed() {
    let app = TestApp::new().await;
    let fleet = app.join_token();
    let first = Join::new(&app, NODE, Some(&fleet)).await;
    let token = app.joined(&first).await.node_token;
    assert_eq!(app.store.disputed_nodes().await.unwrap(), 0);

    let thief = Join::new(&app, NODE, Some(&fleet)).await;
    let problem = app.refused(thief.request()).await;
    assert_eq!((problem.status, problem.kind.as_str()), (403, "key_mismatch"));
    let node = app.node(NODE).await;
    let (since, because) = node.disputed.clone().unwrap();
    assert!(because.contains("with another key ("), "{because}");
    assert_eq!(node.identity().disputed_since_unix_ms, Some(since.as_millisecond()));
    assert_eq!(node.binding.unwrap().public_key, hex::encode(first.pair.public_key()));
    assert!(app.works(&token, 1).await, "its own heartbeats are stored");
    assert_eq!(app.store.disputed_nodes().await.unwrap(), 1);

    let again = Join::by(&app, first.pair, NODE, None).await;
    app.joined(&again).await;
    assert!(app.node(NODE).await.disputed.is_some(), "the holder of the key cannot end it: a person does");
    let id = NODE.parse().unwrap();
    assert!(app.store.settle_node(&id, &root()).await.unwrap() && app.node(NODE).await.disputed.is_none());
    assert!(!app.store.settle_node(&id, &root()).await.unwrap());
}

#[tokio::test]
async fn an_agent_without_a_key_takes_over_no_node_that_has_one() {
    let app = TestApp::new().await;
    app.joined(&Join::new(&app, NODE, Some(&app.join_token())).await).await;
    assert_eq!(app.refused(join_request(&app.join_token(), join_body(NODE))).await.kind, "key_mismatch");
    let (_, because) = app.node(NODE).await.disputed.unwrap();
    assert!(because.contains("without a key"), "{because}");
}

#[tokio::test]
async fn without_a_join_secret_nobody_joins_and_nothing_is_disputed() {
    let app = TestApp::new().await;
    assert_eq!(app.refused(Join::new(&app, NODE, None).await.request()).await.kind, "join_secret_required");
    assert!(app.store.nodes().await.unwrap().is_empty());
    app.joined(&Join::new(&app, NODE, Some(&app.join_token())).await).await;
    assert_eq!(app.refused(Join::new(&app, NODE, None).await.request()).await.kind, "join_secret_required");
    let wrong = Join::new(&app, NODE, Some("csj_wrong")).await;
    assert_eq!(app.refused(wrong.request()).await.kind, "unauthenticated");
    let made_up = Join::new(&app, NODE, Some(&format!("cso_{}", "0".repeat(64)))).await;
    assert_eq!(app.refused(made_up.request()).await.kind, "unauthenticated");
    assert_eq!(app.node(NODE).await.disputed, None);
}

#[tokio::test]
async fn proofs_that_prove_nothing_are_refused_by_name_and_leave_no_trace() {
    let app = TestApp::with_identity(IdentityConfig { audience: Some(SWEEPER.into()), ..Default::default() }).await;
    let fleet = app.join_token();
    let join = async || Join::new(&app, NODE, Some(&fleet)).await;
    let stranger = Ed25519KeyPair::generate().unwrap();
    let others = app.challenge(OTHER).await;
    for (what, request, kind) in [
        ("signed by another key", join().await.signed_by(&stranger), "signature_invalid"),
        ("of another body", swapped(&join().await, &join().await), "signature_invalid"),
        ("not signed", unsigned(&join().await), "signature_invalid"),
        ("no key", join().await.changed(|proof| proof.public_key = "00".into()).request(), "malformed"),
        ("another node's", join().await.changed(|proof| proof.challenge = others).request(), "challenge_unknown"),
        ("made up", join().await.changed(|proof| proof.challenge = "0".repeat(112)).request(), "challenge_unknown"),
        (
            "for another sweeper",
            join().await.changed(|proof| proof.audience = "https://other.example.com".into()).request(),
            "wrong_audience",
        ),
    ] {
        assert_eq!(app.refused(request).await.kind, kind, "{what}");
    }
    assert!(app.store.nodes().await.unwrap().is_empty());
}

fn swapped(one: &Join, other: &Join) -> Request<Body> {
    let mut request = one.request();
    *request.headers_mut() = other.request().headers().clone();
    request
}

fn unsigned(join: &Join) -> Request<Body> {
    let mut request = join.request();
    request.headers_mut().remove(SIGNATURE_HEADER);
    request
}

#[tokio::test]
async fn a_recorded_join_is_worth_nothing() {
    let app = TestApp::new().await;
    let join = Join::new(&app, NODE, Some(&app.join_token())).await;
    app.joined(&join).await;
    let problem = app.refused(join.request()).await;
    assert_eq!((problem.status, problem.kind.as_str()), (403, "challenge_replayed"));
}

#[tokio::test]
async fn a_join_token_admits_one_node_once_and_attests_it() {
    let app = TestApp::new().await;
    let token = app.join_token_for(Some(NODE)).await;
    let other = Join::new(&app, OTHER, Some(&token)).await;
    assert_eq!(app.refused(other.request()).await.kind, "join_token_of_another_node");
    assert_eq!(app.refused(join_request(&token, join_body(NODE))).await.kind, "key_required");
    let join = Join::new(&app, NODE, Some(&token)).await;
    app.joined(&join).await;
    assert_eq!(app.node(NODE).await.attestation, Attestation::JoinToken);
    // Its answer was lost: the same key asks again.
    app.joined(&Join::by(&app, join.pair, NODE, Some(&token)).await).await;
    let thief = Join::new(&app, NODE, Some(&token)).await;
    assert_eq!(app.refused(thief.request()).await.kind, "join_token_used");
    assert_eq!(app.node(NODE).await.disputed, None, "a used token is no secret any more");

    let token = app.join_token_for(None).await;
    app.expire_tokens().await;
    assert_eq!(app.refused(Join::new(&app, OTHER, Some(&token)).await.request()).await.kind, "join_token_expired");
    assert_eq!(app.store.nodes().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_revoked_node_is_free_and_its_tokens_are_void() {
    let app = TestApp::new().await;
    let id = NODE.parse().unwrap();
    assert!(!app.store.revoke_node(&id, &root()).await.unwrap(), "nobody has joined yet");
    let first = Join::new(&app, NODE, Some(&app.join_token())).await;
    let token = app.joined(&first).await.node_token;
    app.refused(Join::new(&app, NODE, Some(&app.join_token())).await.request()).await;
    assert!(app.store.revoke_node(&id, &root()).await.unwrap());
    let node = app.node(NODE).await;
    assert!(node.revoked_at.is_some() && node.disputed.is_none() && node.attestation == Attestation::None, "{node:?}");
    assert!(!app.works(&token, 1).await);
    assert_eq!(app.refused(Join::by(&app, first.pair, NODE, None).await.request()).await.kind, "join_secret_required");
    let again = Join::new(&app, NODE, Some(&app.join_token_for(Some(NODE)).await)).await;
    assert!(app.works(&app.joined(&again).await.node_token, 1).await);
    let node = app.node(NODE).await;
    assert_eq!((node.attestation, node.revoked_at), (Attestation::JoinToken, None));
}

#[tokio::test]
async fn a_node_from_before_there_were_keys_keeps_its_token_until_it_binds_one() {
    let app = TestApp::new().await;
    let old = app.join(NODE).await;
    assert_eq!(old.expires_in_s, None);
    assert!(app.works(&old.node_token, 1).await);
    let join = Join::new(&app, NODE, Some(&app.join_token())).await;
    let new = app.joined(&join).await;
    assert_eq!(new.last_sequence, 1);
    assert!(!app.works(&old.node_token, 2).await && app.works(&new.node_token, 2).await);
    assert!(app.node(NODE).await.binding.is_some());
}

#[path = "evidence_tests.rs"]
mod evidence;

#[tokio::test]
async fn an_agent_that_says_more_than_this_sweeper_knows_is_let_in_all_the_same() {
    let app = TestApp::new().await;
    let with_more = |body: String| {
        let mut body: serde_json::Value = serde_json::from_str(&body).unwrap();
        body["of_a_later_version"] = serde_json::json!({ "more": [1] });
        body.to_string()
    };
    let body = with_more(serde_json::json!({ "node_id": NODE }).to_string());
    let request = Request::post(CHALLENGE_PATH).header(header::CONTENT_TYPE, "application/json");
    assert_eq!(app.call(request.body(body.into()).unwrap()).await.0, StatusCode::OK);
    let (status, _, body) = app.call(join_request(&app.join_token(), with_more(join_body(NODE)))).await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    let (status, _, body) = app.call(join_request(&app.join_token(), "{\"of_a_later_version\":1}".into())).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{}", String::from_utf8_lossy(&body));
}
