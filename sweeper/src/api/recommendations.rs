//! `GET /v1/recommendations`: which machines would do as another type, as `sweeper recommendations --output json` tells it, for people and programs that hold the operator token.

use super::{
    AppState, auth,
    problem::{Reason, Refusal},
};
use crate::recommendations::{self, Answer, Question};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
};
use jiff::Timestamp;
use serde::Deserialize;

/// What is asked: `?resource=i-0123456789abcdef0&at=2026-11-01T00:00:00Z`; of all machines and as of now what is left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    resource: Option<String>,
    at: Option<Timestamp>,
}

pub(super) async fn show(
    State(state): State<AppState>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Answer>, Refusal> {
    auth::require_operator(&state, &headers).await?;
    let invalid = |why: String| Refusal::new(Reason::Invalid, format!("{why}."));
    let Query(Asked { resource, at }) = asked.map_err(|error| invalid(error.body_text()))?;
    let question = Question { resource, at };
    let _turn = state.turn()?;
    let answer = recommendations::recommend(state.store(), &state.settings().recommendations, &question).await?;
    match &question.resource {
        Some(resource) if answer.recommendations.is_empty() && answer.not_recommended.is_empty() => {
            Err(Refusal::new(Reason::NotFound, format!("No list has a machine `{resource}`.")))
        }
        _ => Ok(Json(answer)),
    }
}
