//! What happens to every request, whatever it asks for: a number for the log, a time limit, and for a refusal one log line and one count.

use super::{
    counters,
    problem::{Reason, Refusal},
};
use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderName, HeaderValue},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use std::{net::SocketAddr, time::Duration};
use tracing::Instrument as _;

/// Longest time from the request's head to the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(super) async fn observe(request: Request, next: Next) -> Response {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.to_string());
    let peer = peer.unwrap_or_else(|| "unknown".to_owned());
    let span = tracing::info_span!(
        "request",
        request_id = id,
        method = %request.method(),
        path = request.uri().path(),
        peer,
    );
    async move {
        let mut response = match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let limit = REQUEST_TIMEOUT.as_secs();
                Refusal::new(Reason::Timeout, format!("It was not complete and answered within {limit} s."))
                    .into_response()
            }
        };
        if let Some(refusal) = response.extensions().get::<Refusal>() {
            counters::refused(refusal.reason);
            let node = refusal.node.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
            let status = response.status().as_u16();
            tracing::warn!(reason = refusal.reason.word(), status, node, detail = refusal.detail, "request refused");
        }
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        response
    }
    .instrument(span)
    .await
}
