//! What orchestrators and Prometheus ask for. Whether the process runs and its database answers is told to anybody, and no more than that; the
//! metrics, which name the accounts and regions that are swept, to who holds the operator token.

use super::{
    AppState, auth, counters,
    problem::{Reason, Refusal},
};
use crate::sweep::ScopeStatus;
use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::IntoResponse,
};

/// The process runs.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The process can serve: its database answers.
pub(super) async fn readyz(State(state): State<AppState>) -> Result<&'static str, Refusal> {
    state.store().ping().await.map_err(|error| {
        // Its words name hosts and users.
        tracing::error!(error = %crate::chain(&error), "not ready");
        Refusal::new(Reason::Unavailable, "The database does not answer; the sweeper's log says why.")
    })?;
    Ok("ready\n")
}

/// The counters of this process, and how scopes and nodes stand in the database.
pub(super) async fn metrics(State(state): State<AppState>, headers: HeaderMap) -> Result<impl IntoResponse, Refusal> {
    auth::require_operator(&state, &headers).await?;
    match state.store().work_units().await {
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
    let behind = state.store().rollups_due_since().await;
    if let Err(error) = &behind {
        tracing::error!(error = %crate::chain(error), "it is not known which rollups are due");
    }
    counters::rollups_behind(behind.ok().map(Option::unwrap_or_default));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], counters::render()))
}
