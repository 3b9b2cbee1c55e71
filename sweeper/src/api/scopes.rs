//! `GET /v1/scopes`: how the sweeps get on, for people and programs that hold the operator token. What agents hold is not enough:
//! which accounts and regions there are is none of their business.

use super::{AppState, auth, problem::Refusal};
use crate::sweep::ScopeStatus;
use axum::{Json, extract::State, http::HeaderMap};

pub(super) async fn list(State(state): State<AppState>, headers: HeaderMap) -> Result<Json<Vec<ScopeStatus>>, Refusal> {
    auth::require_operator(&state, &headers).await?;
    Ok(Json(ScopeStatus::of(state.store().work_units().await?, state.timetable())))
}
