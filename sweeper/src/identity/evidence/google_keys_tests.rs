//! The keys from a real HTTP server and from a file, and how often they are asked for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use axum::{Router, extract::State, http::StatusCode, response::IntoResponse as _, routing::get};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// In the shape of <https://www.googleapis.com/oauth2/v3/certs>; keys of other kinds are passed over.
const KEYS: &str = r#"{"keys":[
    {"kid":"one","kty":"RSA","alg":"RS256","use":"sig","n":"AMIg","e":"AQAB"},
    {"kid":"other","kty":"EC","crv":"P-256","x":"AA","y":"AA"},
    {"kid":"weak","kty":"RSA","alg":"HS256","n":"AMIg","e":"AQAB"}]}"#;

#[derive(Default)]
struct Google {
    asked: AtomicUsize,
    is_down: AtomicBool,
}

async fn google() -> (Arc<Google>, GoogleKeys) {
    async fn certs(State(google): State<Arc<Google>>) -> axum::response::Response {
        google.asked.fetch_add(1, Ordering::SeqCst);
        if google.is_down.load(Ordering::SeqCst) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        ([("cache-control", "public, max-age=300, must-revalidate")], KEYS).into_response()
    }
    let google = Arc::new(Google::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/certs", listener.local_addr().unwrap());
    let router = Router::new().route("/certs", get(certs)).with_state(Arc::clone(&google));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (google, GoogleKeys::new(Source::Address(url)))
}

impl GoogleKeys {
    /// As if so much time had passed.
    async fn wait(&self, time: Duration) {
        let mut known = self.known.lock().await;
        known.good_until = known.good_until.map(|at| at.checked_sub(time).unwrap());
        known.asked_at = known.asked_at.map(|at| at.checked_sub(time).unwrap());
    }
}

#[tokio::test]
async fn keys_are_kept_for_as_long_as_the_answer_says_and_made_up_ids_ask_once_a_minute() {
    let (google, keys) = google().await;
    let key = keys.key("one").await.unwrap();
    assert_eq!((key.n, key.e), (vec![0xc2, 0x20], vec![1, 0, 1]), "without leading zeros");
    for id in ["one", "other", "weak", "made up", ""] {
        assert_eq!(keys.key(id).await.is_ok(), id == "one", "{id}");
    }
    assert!(matches!(keys.key("made up").await, Err(EvidenceError::UnknownKey)));
    assert_eq!(google.asked.load(Ordering::SeqCst), 1);
    keys.wait(PAUSE).await;
    assert!(keys.key("made up").await.is_err());
    assert_eq!(google.asked.load(Ordering::SeqCst), 2);
    keys.wait(Duration::from_secs(299)).await;
    assert!(keys.key("one").await.is_ok());
    assert_eq!(google.asked.load(Ordering::SeqCst), 2);
    keys.wait(Duration::from_secs(2)).await;
    assert!(keys.key("one").await.is_ok());
    assert_eq!(google.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_google_that_does_not_answer_is_no_forgery_and_is_not_asked_at_each_join() {
    let (google, keys) = google().await;
    google.is_down.store(true, Ordering::SeqCst);
    for _join in 0..5 {
        assert!(matches!(keys.key("one").await, Err(EvidenceError::Unavailable(_))));
    }
    assert_eq!(google.asked.load(Ordering::SeqCst), 1);
    google.is_down.store(false, Ordering::SeqCst);
    keys.wait(PAUSE).await;
    assert!(keys.key("one").await.is_ok());
    // Keys whose time is over are not believed while no others are to be had.
    google.is_down.store(true, Ordering::SeqCst);
    keys.wait(Duration::from_secs(301)).await;
    assert!(matches!(keys.key("one").await, Err(EvidenceError::Unavailable(_))));
}

#[tokio::test]
async fn a_file_serves_where_google_is_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let keys = GoogleKeys::new(Source::File(file.clone()));
    assert!(matches!(keys.key("one").await, Err(EvidenceError::Unavailable(_))));
    std::fs::write(&file, KEYS).unwrap();
    keys.wait(PAUSE).await;
    assert!(keys.key("one").await.is_ok());
}

#[test]
fn an_answer_is_good_for_as_long_as_it_says() {
    for (text, seconds) in [("public, max-age=19, s", 19), ("max-age=x", 0), ("", 0), ("no-store", 0)] {
        assert_eq!(max_age(text), Duration::from_secs(seconds), "{text}");
    }
    assert!(parse(b"[]").is_none() && parse(b"").is_none());
}
