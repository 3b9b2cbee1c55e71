//! `GET /v1/rules`: the rules file, for nodes that do not have it yet.

use super::{
    AppState, auth,
    problem::{Reason, Refusal},
};
use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use heartbeat::api::RULES_TYPE;

pub(super) async fn send(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, Refusal> {
    auth::require_node(&state, &headers).await?;
    let Some(served) = state.rules() else {
        let detail = "This sweeper has no rules file (`ingest.rules_file`): the agents' built-in rules hold.";
        return Err(Refusal::new(Reason::NotFound, detail));
    };
    let tag = format!("\"{}\"", served.sha256);
    let mut response = if has(&headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, HeaderValue::from_static(RULES_TYPE))], served.file.clone()).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Whether the sender says that it has the file already (RFC 9110, section 13.1.2).
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.map(|known| known.strip_prefix("W/").unwrap_or(known)).any(|known| known == tag || known == "*")
}
