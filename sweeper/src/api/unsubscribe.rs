//! `/v1/digests/unsubscribe`: where a reader of digests stops them. Anybody may ask: what is not known is looked up so often and no more.
//!
//! A POST with the token of a mail's link stops that list for that address, without a login, as mail programs do it (RFC 8058). A GET changes nothing, because mail scanners follow links: it shows a page with a
//! button. The token stands in the query, which is not logged.

use super::{
    AppState,
    problem::{Reason, Refusal},
};
use crate::store::{Reader, TokenHash};
use axum::{
    extract::State,
    http::{HeaderName, Uri, header},
    response::{Html, IntoResponse as _, Response},
};
use url::form_urlencoded;

/// As long as a token is.
const TOKEN_DIGITS: usize = 64;

/// The page of a link: what it is for, and a button. Looking at it changes nothing.
pub(super) async fn show(State(state): State<AppState>, uri: Uri) -> Result<Response, Refusal> {
    let reader = reader(&state, &uri).await?;
    let list = plain(&reader.list);
    let said = match reader.left_at {
        Some(_) => format!(
            "<p>You get no more digests of the list &ldquo;{list}&rdquo;. Whoever runs Cloud Sweeper can send them to you again.</p>"
        ),
        None => format!(
            "<p>You get digests of the list &ldquo;{list}&rdquo; from Cloud Sweeper. Nothing has been changed by opening this page.</p>\
             <form method=\"post\"><button type=\"submit\">Send me no more of them</button></form>"
        ),
    };
    Ok(page(&said))
}

/// Stops the digests.
pub(super) async fn stop(State(state): State<AppState>, uri: Uri) -> Result<Response, Refusal> {
    let reader = reader(&state, &uri).await?;
    let now = state.store().now().await?;
    state.store().set_digest_left(&reader.list, &reader.address, Some(now)).await?;
    tracing::info!(list = reader.list, "a reader wants no more digests of a list");
    let list = plain(&reader.list);
    Ok(page(&format!("<p>You get no more digests of the list &ldquo;{list}&rdquo;.</p>")))
}

/// Whose link it is.
async fn reader(state: &AppState, uri: &Uri) -> Result<Reader, Refusal> {
    let query = uri.query().unwrap_or_default();
    let token = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token").map(|(_, token)| token);
    let is_token = |token: &str| token.len() == TOKEN_DIGITS && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unknown = || Refusal::new(Reason::NotFound, "This link is of no digest that was sent from here.");
    let token = token.filter(|token| is_token(token)).ok_or_else(unknown)?;
    let strangers = &state.strangers().readers;
    strangers.may_look_up()?;
    match state.store().digest_reader_of(&TokenHash::of(&token)).await? {
        Some(reader) => Ok(reader),
        None => {
            strangers.note();
            Err(unknown())
        }
    }
}

/// A list's name holds nothing else.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

fn page(said: &str) -> Response {
    let headers: [(HeaderName, &str); 3] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; form-action 'self'; frame-ancestors 'none'"),
    ];
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<title>Digests of Cloud Sweeper</title>\n</head>\n<body>\n<h1>Digests of Cloud Sweeper</h1>\n{said}\n</body>\n</html>\n"
    );
    (headers, Html(html)).into_response()
}
