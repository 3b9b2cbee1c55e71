//! What is done with a body of heartbeats once its sender is known: unpack → count → decode → version → node → clock → store.
//!
//! What it takes in memory is counted before it is decoded, and waits for its part of what all that are under way may take.
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
    // As many are unpacked as there are slots, and no more wait for memory. What is under way keeps both, though its sender may be gone.
    let slot = state.decoder_slot().await?;
    let (unpacked, slot) = blocking(move || Ok((heartbeat::unpack(&body)?, slot))).await?;
    let memory = state.memory(unpacked.decoded_bytes()).await?;
    let decoded = blocking(move || {
        let envelope = unpacked.decode()?;
        drop(slot);
        Ok((envelope, memory))
    });
    let (envelope, _memory) = decoded.await?;
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

/// Up to 4 MiB are unpacked and parsed: milliseconds that would hold up other requests.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DecodeError> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Refusal::new(Reason::Internal, "Decoding failed; the sweeper's log has the details."))?
        .map_err(refusal)
}

fn refusal(error: DecodeError) -> Refusal {
    match error {
        DecodeError::TooLarge { .. } => Refusal::new(Reason::TooLarge, error.to_string()),
        DecodeError::Compression(_) | DecodeError::Malformed | DecodeError::Protobuf(_) => {
            Refusal::new(Reason::Malformed, error.to_string())
        }
        DecodeError::Version { .. } => Refusal::new(Reason::UnsupportedVersion, error.to_string()),
        DecodeError::Invalid { field, reason } => Refusal::new(Reason::Invalid, format!("Field `{field}`: {reason}.")),
    }
}
