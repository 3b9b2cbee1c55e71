//! What orchestrators and Prometheus ask for. None of it needs a token, and none of it names a node. The metrics name the
//! accounts and regions that are swept.

use super::{
    AppState, counters,
    problem::{Reason, Refusal},
};
use crate::sweep::ScopeStatus;
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

/// The counters of this process, and how scopes and nodes stand in the database.
pub(super) async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    match state.store().units().await {
        Ok(units) => counters::scopes(&ScopeStatus::of(units, state.timetable())),
        Err(error) => {
            tracing::error!(error = %crate::chain(&error), "the scopes cannot be read; their metrics are not known");
            counters::scopes_unknown();
        }
    }
    let disputed = state.store().disputed_nodes().await;
    if let Err(error) = &disputed {
        tracing::error!(error = %crate::chain(error), "the disputed nodes cannot be counted; their metric is not known");
    }
    counters::disputed(disputed.ok());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], counters::render())
}
