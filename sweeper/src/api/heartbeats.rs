//! `POST /v1/heartbeats`: heartbeats of one node and one boot, stored once however often they are sent.

use super::{AppState, auth, body, counters, problem::Refusal};
use crate::ingest;
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use heartbeat::{
    api::{Ack, CONTENT_ENCODING, CONTENT_TYPE},
    envelope::MAX_BODY_BYTES,
};

pub(super) async fn receive(
    State(state): State<AppState>,
    headers: HeaderMap,
    content: Body,
) -> Result<Json<Ack>, Refusal> {
    let node = auth::require_node(state.store(), &headers).await?;
    let served = async {
        body::require_type(&headers, CONTENT_TYPE, CONTENT_ENCODING)?;
        let _slot = state.body_slot()?;
        let bytes = body::read(&headers, content, MAX_BODY_BYTES).await?;
        ingest::receive(&state, &node, bytes).await
    };
    let (ack, stored) = served.await.map_err(|refusal| refusal.of_node(&node.node_id))?;
    counters::stored(&stored);
    if stored.lost > 0 {
        tracing::warn!(node = %node.node_id, boot = %ack.boot_id, lost_heartbeats = stored.lost, "a node gave up heartbeats before they arrived");
    }
    Ok(Json(ack))
}
