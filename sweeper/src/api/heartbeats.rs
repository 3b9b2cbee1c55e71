//! `POST /v1/heartbeats`: heartbeats of one node and one boot, stored once however often they are sent.

use super::{AppState, auth, body, counters, problem::Refusal};
use crate::{ingest, store::Node};
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use heartbeat::{
    api::{Ack, CONTENT_ENCODING, CONTENT_TYPE},
    envelope::MAX_BODY_BYTES,
};
use jiff::Timestamp;

/// Most bytes of a reason that is kept.
const MAX_WHY_BYTES: usize = 512;

/// Notes with the node why its heartbeats are refused, if they would be refused again: it is not silent.
async fn note(state: &AppState, node: &Node, refusal: &Refusal) {
    if !refusal.reason.is_the_senders() {
        return;
    }
    let why = heartbeat::text::cut(&refusal.detail, MAX_WHY_BYTES);
    // If this fails, too, the sender still learns why it is refused, and the log has both.
    if let Err(error) = state.store().note_refused_heartbeats(&node.node_id, why, Timestamp::now()).await {
        tracing::warn!(node = %node.node_id, error = %crate::chain(&error), "it cannot be noted that heartbeats were refused");
    }
}

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
    let (ack, stored) = match served.await {
        Ok(stored) => stored,
        Err(refusal) => {
            note(&state, &node, &refusal).await;
            return Err(refusal.of_node(&node.node_id));
        }
    };
    counters::stored(&stored);
    if stored.lost > 0 {
        tracing::warn!(node = %node.node_id, boot = %ack.boot_id, lost_heartbeats = stored.lost, "a node gave up heartbeats before they arrived");
    }
    Ok(Json(ack))
}
