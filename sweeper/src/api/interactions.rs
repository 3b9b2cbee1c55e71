//! `POST /v1/slack/interactions`: what Slack says that somebody pressed, or asked by its slash command. Anybody may send anything here: it is read up to 256 KiB, and then it is signed by Slack or refused.

use super::{
    AppState, body,
    problem::{Reason, Refusal},
};
use crate::interactions::NotTaken;
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use notifier::slack::{NotSlacks, SIGNATURE_HEADER, TIMESTAMP_HEADER};

/// Slack sends the whole message along, percent-encoded: at most 60 kB as it is, and thrice that so.
const LIMIT: usize = 256 * 1024;

pub(super) async fn receive(
    State(state): State<AppState>,
    headers: HeaderMap,
    sent: Body,
) -> Result<StatusCode, Refusal> {
    let Some(interactions) = state.interactions().filter(|interactions| interactions.takes_requests()) else {
        return Err(Refusal::new(Reason::NotFound, "No signing secret of a Slack app is configured."));
    };
    let Some(_place) = interactions.place() else {
        return Err(Refusal::new(Reason::Overloaded, "Too many requests are being read; try again in a moment."));
    };
    body::require_type(&headers, "application/x-www-form-urlencoded", "identity")?;
    let bytes = body::read(&headers, sent, LIMIT).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match interactions.heard(header(SIGNATURE_HEADER), header(TIMESTAMP_HEADER), &bytes) {
        Ok(Some(heard)) => match interactions.take(heard).await {
            Ok(()) => {}
            Err(NotTaken::Store(error)) => return Err(error.into()),
            Err(busy @ NotTaken::Busy) => return Err(Refusal::new(Reason::Overloaded, busy.to_string())),
        },
        Ok(None) => {}
        Err(why @ NotSlacks::Signature) => return Err(Refusal::new(Reason::Unauthenticated, why.to_string())),
        Err(why @ NotSlacks::Malformed) => return Err(Refusal::new(Reason::Malformed, why.to_string())),
    }
    Ok(StatusCode::OK)
}
