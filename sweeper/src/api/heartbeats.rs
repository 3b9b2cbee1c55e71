//! `POST /v1/heartbeats`: heartbeats of one node and one boot, stored once however often they are sent.

use super::{
    AppState, auth, body, counters,
    problem::{Reason, Refusal},
};
use crate::{
    ingest::{Rejected, Sender},
    store::Stored,
};
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use heartbeat::{
    BootId, DecodeError,
    api::{Ack, CONTENT_ENCODING, CONTENT_TYPE},
    envelope::MAX_BODY_BYTES,
};
use jiff::Timestamp;

/// Most bytes of a reason that is kept.
const MAX_WHY_BYTES: usize = 512;

/// Notes with the node why its heartbeats are refused, if they would be refused again: it is not silent.
async fn note(state: &AppState, node: &Sender, refusal: &Refusal) {
    if !refusal.reason.is_the_senders() {
        return;
    }
    match state.ingest().still_speaks(node).await {
        Ok(true) => {}
        // Whoever holds a token that has become void says nothing of the node.
        Ok(false) => return,
        Err(error) => {
            tracing::warn!(node = %node.node_id, error = %crate::chain(&error), "it cannot be noted that heartbeats were refused");
            return;
        }
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
    let node = auth::require_sender(&state, &headers).await?;
    let served = async || -> Result<(BootId, Stored), Refusal> {
        body::require_type(&headers, CONTENT_TYPE, CONTENT_ENCODING)?;
        let slot = state.body_slot()?;
        let bytes = body::read(&headers, content, MAX_BODY_BYTES).await?;
        Ok(state.ingest().receive(&node, bytes, slot).await?)
    };
    let (boot_id, stored) = match served().await {
        Ok(stored) => stored,
        Err(refusal) => {
            note(&state, &node, &refusal).await;
            return Err(refusal.of_node(&node.node_id));
        }
    };
    counters::stored(&stored);
    if stored.lost > 0 {
        tracing::warn!(node = %node.node_id, boot = %boot_id, lost_heartbeats = stored.lost, "a node discarded heartbeats before they arrived");
    }
    Ok(Json(Ack {
        boot_id,
        contiguous_sequence: stored.contiguous_sequence,
        stored: stored.stored,
        duplicates: stored.duplicates,
        rules: Some(state.rules_offer()),
        question: state.questions().to(&node.node_id),
    }))
}

impl From<Rejected> for Refusal {
    fn from(rejected: Rejected) -> Self {
        let detail = rejected.to_string();
        match rejected {
            Rejected::Unreadable(error) => unreadable(&error),
            Rejected::ForeignNode { .. } => Self::new(Reason::ForbiddenNode, detail),
            Rejected::ClockSkew(_) => Self::new(Reason::ClockSkew, detail),
            Rejected::TokenVoid => Self::new(Reason::Unauthenticated, detail),
            Rejected::Store(error) => error.into(),
            Rejected::Unavailable | Rejected::Closing => Self::new(Reason::Unavailable, detail),
            Rejected::Failed => Self::new(Reason::Internal, detail),
        }
    }
}

fn unreadable(error: &DecodeError) -> Refusal {
    match error {
        DecodeError::TooLarge { .. } => Refusal::new(Reason::TooLarge, error.to_string()),
        DecodeError::Compression(_) | DecodeError::Malformed | DecodeError::Protobuf(_) => {
            Refusal::new(Reason::Malformed, error.to_string())
        }
        DecodeError::Version { .. } => Refusal::new(Reason::UnsupportedVersion, error.to_string()),
        DecodeError::Invalid { field, reason } => Refusal::new(Reason::Invalid, format!("Field `{field}`: {reason}.")),
    }
}
