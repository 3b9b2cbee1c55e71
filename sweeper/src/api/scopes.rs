//! `GET /v1/scopes`: how the sweeps get on, for people and programs that hold the fleet token. A node's token is not enough:
//! which accounts and regions there are is none of its business.

use super::{AppState, auth, problem::Refusal};
use crate::sweep::ScopeStatus;
use axum::{Json, extract::State, http::HeaderMap};

pub(super) async fn list(State(state): State<AppState>, headers: HeaderMap) -> Result<Json<Vec<ScopeStatus>>, Refusal> {
    auth::require_fleet_token(state.store(), &headers).await?;
    Ok(Json(ScopeStatus::of(state.store().units().await?, state.timetable())))
}
