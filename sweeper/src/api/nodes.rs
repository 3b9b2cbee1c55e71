//! `POST /v1/nodes/join`: the join token is exchanged for a token that is good for one node.
//!
//! Whoever holds the join token can join as any node, and again as one that has joined before; the earlier token is then void, its holder is
//! refused, joins anew itself, and both joins stand in the log.

use super::{
    AppState, auth, body, counters,
    problem::{Reason, Refusal},
};
use crate::store::TokenHash;
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use heartbeat::api::{JoinRequest, JoinResponse};
use heartbeat::envelope::MAX_NAME_BYTES;
use jiff::Timestamp;

/// Largest accepted join request, in bytes; a usual one has 300.
const MAX_JOIN_BYTES: usize = 16 * 1024;

pub(super) async fn join(
    State(state): State<AppState>,
    headers: HeaderMap,
    content: Body,
) -> Result<Json<JoinResponse>, Refusal> {
    auth::require_join_token(state.store(), &headers).await?;
    body::require_type(&headers, "application/json", "identity")?;
    let _slot = state.body_slot()?;
    let bytes = body::read(&headers, content, MAX_JOIN_BYTES).await?;
    let request: JoinRequest = serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::new(Reason::Malformed, format!("The body is not a join request: {error}.")))?;
    for (field, text) in [("hostname", &request.hostname), ("agent_version", &request.agent_version)] {
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.contains(heartbeat::text::is_hidden) {
            let detail =
                format!("{field}: 1 to {MAX_NAME_BYTES} bytes without control or invisible characters are allowed.");
            return Err(Refusal::new(Reason::Invalid, detail).of_node(&request.node_id));
        }
    }
    let node_token = auth::node_token()?;
    let joined = state.store().join_node(&request, &TokenHash::of(&node_token), Timestamp::now()).await?;
    counters::joined();
    tracing::info!(
        node = %request.node_id,
        boot = %request.boot_id,
        hostname = request.hostname,
        agent_version = request.agent_version,
        last_sequence = joined.last_sequence,
        earlier_token_voided = joined.rejoined,
        "node joined"
    );
    Ok(Json(JoinResponse { node_token, last_sequence: joined.last_sequence }))
}
