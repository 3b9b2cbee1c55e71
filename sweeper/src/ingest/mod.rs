//! What is done with a body of heartbeats once its sender is known: decode → version → node → clock → store.
//!
//! Nothing of a refused envelope is stored. The order matters: a sender learns the first fault only, and what costs least is checked first.

mod clock;

use crate::{
    api::{
        AppState,
        problem::{Reason, Refusal},
    },
    store::{Node, Stored},
};
use heartbeat::{DecodeError, api::Ack};
use jiff::Timestamp;

/// Checks and stores one envelope of `node`.
pub(crate) async fn receive(state: &AppState, node: &Node, body: Vec<u8>) -> Result<(Ack, Stored), Refusal> {
    let slot = state.decoder_slot().await?;
    // Up to 4 MiB are unpacked and parsed: milliseconds that would hold up other requests.
    let decoded = tokio::task::spawn_blocking(move || {
        let decoded = heartbeat::decode(&body);
        drop(slot);
        decoded
    });
    let envelope = decoded
        .await
        .map_err(|_| Refusal::new(Reason::Internal, "Decoding failed; the sweeper's log has the details."))?
        .map_err(refusal)?;
    if envelope.node_id != node.node_id {
        let detail =
            format!("The token is that of {}, the heartbeats claim to be of {}.", node.node_id, envelope.node_id);
        return Err(Refusal::new(Reason::ForbiddenNode, detail));
    }
    let now = Timestamp::now();
    clock::check(now, state.clock_skew(), &envelope)
        .map_err(|skewed| Refusal::new(Reason::ClockSkew, skewed.to_string()))?;
    let stored = state.store().store_heartbeats(&envelope, now).await?;
    let ack = Ack {
        boot_id: envelope.boot_id,
        contiguous_sequence: stored.contiguous_sequence,
        stored: stored.stored,
        duplicates: stored.duplicates,
        rules: Some(state.rules_offer()),
    };
    Ok((ack, stored))
}

fn refusal(error: DecodeError) -> Refusal {
    match error {
        DecodeError::TooLarge { .. } => Refusal::new(Reason::TooLarge, error.to_string()),
        DecodeError::Compression(_) | DecodeError::Protobuf(_) => Refusal::new(Reason::Malformed, error.to_string()),
        DecodeError::Version { .. } => Refusal::new(Reason::UnsupportedVersion, error.to_string()),
        DecodeError::Invalid { field, reason } => Refusal::new(Reason::Invalid, format!("Field `{field}`: {reason}.")),
    }
}
