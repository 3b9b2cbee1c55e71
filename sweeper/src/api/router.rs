//! All routes of the sweeper, in one place.

use super::{
    AppState, costs, health, heartbeats, interactions, nodes,
    observe::observe,
    problem::{Reason, Refusal},
    recommendations, rules, scopes, unsubscribe,
};
use crate::digest::UNSUBSCRIBE_PATH;
use axum::{
    Router,
    http::Uri,
    middleware,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use heartbeat::api::{CHALLENGE_PATH, HEARTBEATS_PATH, JOIN_PATH, RULES_PATH};
use std::any::Any;
use tower_http::catch_panic::CatchPanicLayer;

/// The sweeper's HTTP interface.
pub fn router(state: AppState) -> Router {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route(CHALLENGE_PATH, post(nodes::challenge))
        .route(JOIN_PATH, post(nodes::join))
        .route(HEARTBEATS_PATH, post(heartbeats::receive))
        .route(RULES_PATH, get(rules::send))
        .route("/v1/scopes", get(scopes::list))
        .route("/v1/costs", get(costs::show))
        .route("/v1/recommendations", get(recommendations::show))
        .route("/v1/slack/interactions", post(interactions::receive))
        .route(UNSUBSCRIBE_PATH, get(unsubscribe::show).post(unsubscribe::stop))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(observe))
        .with_state(state)
}

async fn not_found(uri: Uri) -> Refusal {
    let path: String = uri.path().chars().take(64).collect();
    Refusal::new(Reason::NotFound, format!("No resource is served at {path}."))
}

async fn method_not_allowed() -> Refusal {
    Refusal::new(Reason::MethodNotAllowed, "See the Allow header for the methods that are.")
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("no text"), "a request handler panicked");
    Refusal::new(Reason::Internal, "This is a fault of the sweeper; its log has the details.").into_response()
}
