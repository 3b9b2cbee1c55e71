//! What orchestrators and Prometheus ask for. None of it needs a token, and none of it names a node.

use super::{
    AppState, counters,
    problem::{Reason, Refusal},
};
use axum::{extract::State, http::header, response::IntoResponse};

/// The process runs.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The process can serve: its database answers.
pub(super) async fn readyz(State(state): State<AppState>) -> Result<&'static str, Refusal> {
    state.store().ping().await.map_err(|error| {
        let error = anyhow::Error::new(error);
        Refusal::new(Reason::Unavailable, format!("{error:#}"))
    })?;
    Ok("ready\n")
}

/// The counters of this process.
pub(super) async fn metrics() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], counters::render())
}
