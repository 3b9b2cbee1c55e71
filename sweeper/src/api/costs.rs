//! `GET /v1/costs`: what machines cost and what used them, as `sweeper costs --output json` tells it, for people and programs that hold the operator token.

use super::{
    AppState, auth,
    problem::{Reason, Refusal},
};
use crate::attribution::{self, Answer, NotAnswered, Question};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
};
use costs::By;
use jiff::Timestamp;
use serde::Deserialize;

/// What is asked: `?by=tool,day&from=2026-11-01T00:00:00Z&to=…`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    by: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

pub(super) async fn show(
    State(state): State<AppState>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Answer>, Refusal> {
    auth::require_operator(&state, &headers).await?;
    let invalid = |why: String| Refusal::new(Reason::Invalid, format!("{why}."));
    let Query(Asked { by, from, to }) = asked.map_err(|error| invalid(error.body_text()))?;
    let by: By = by.as_deref().unwrap_or("instance").parse().map_err(|error| invalid(format!("by: {error}")))?;
    let question = Question::new(by, from, to, state.store().now().await?).map_err(invalid)?;
    let _turn = state.turn()?;
    match attribution::attribute(state.store(), &state.settings().costs, &question).await {
        Ok(answer) => Ok(Json(answer)),
        Err(NotAnswered::Store(error)) => Err(error.into()),
        Err(too_much) => Err(invalid(too_much.to_string())),
    }
}
