//! Takes heartbeats and keeps nothing but their sizes: a sweeper's cost is not the agent's.

use axum::{Json, Router, body::Bytes, http::StatusCode, routing::post};
use heartbeat::api::{Ack, CHALLENGE_PATH, Challenge, HEARTBEATS_PATH, JOIN_PATH, JoinResponse};
use std::sync::{Arc, Mutex};
use tokio::{net::TcpListener, task::JoinHandle};

/// Answers as a sweeper does that stores everything.
pub(crate) struct Sink {
    url: String,
    /// Of each envelope with one heartbeat: bytes on the wire, and workload rows.
    seen: Arc<Mutex<Vec<(usize, usize)>>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Sink {
    pub(crate) async fn start() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let take = Arc::clone(&seen);
        let challenge =
            || async { Json(Challenge { challenge: "bench".into(), expires_in_s: 120, evidence: Vec::new() }) };
        let join = || async { Json(JoinResponse { node_token: "bench".into(), expires_in_s: None, last_sequence: 0 }) };
        let heartbeats = move |body: Bytes| {
            let answer = heartbeat::decode(&body).map(|envelope| {
                if let [one] = envelope.heartbeats.as_slice() {
                    take.lock().expect("nobody panicked").push((body.len(), one.workloads.len()));
                }
                let sequences = envelope.heartbeats.iter().map(|heartbeat| heartbeat.sequence);
                Ack {
                    boot_id: envelope.boot_id,
                    contiguous_sequence: sequences.max().unwrap_or(0),
                    stored: u32::try_from(envelope.heartbeats.len()).unwrap_or(u32::MAX),
                    duplicates: 0,
                    rules: None,
                    question: None,
                }
            });
            async { answer.map(Json).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string())) }
        };
        let router = Router::new().route(CHALLENGE_PATH, post(challenge)).route(JOIN_PATH, post(join));
        let router = router.route(HEARTBEATS_PATH, post(heartbeats));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on loopback");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let server = tokio::spawn(async { axum::serve(listener, router).await });
        Self { url, seen, server }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Bytes and rows of each heartbeat that came alone.
    pub(crate) fn seen(&self) -> Vec<(usize, usize)> {
        self.seen.lock().expect("nobody panicked").clone()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.server.abort();
    }
}
