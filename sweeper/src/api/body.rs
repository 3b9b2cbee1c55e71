//! Reads a request's body with its type and size checked before memory is spent.

use super::problem::{Reason, Refusal};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, header},
};
use futures::StreamExt as _;

/// So much of a body that is too large is still read and thrown away, so that its sender gets to see the answer.
const DRAIN_BYTES: usize = 4 * 1024 * 1024;

/// Refuses a body whose `Content-Type` (parameters aside) or `Content-Encoding` is another.
pub(super) fn require_type(headers: &HeaderMap, content_type: &str, encoding: &str) -> Result<(), Refusal> {
    let value = |name: HeaderName, default: &'static str| {
        headers
            .get(name)
            .map_or(Some(default), |value| value.to_str().ok())
            .unwrap_or("unreadable")
            .to_ascii_lowercase()
    };
    let found_type = value(header::CONTENT_TYPE, "none");
    let found_encoding = value(header::CONTENT_ENCODING, "identity");
    if found_type.split(';').next().map(str::trim) == Some(content_type) && found_encoding.trim() == encoding {
        return Ok(());
    }
    let shown = |text: &str| text.chars().take(64).collect::<String>();
    let detail = format!(
        "Send Content-Type {content_type} with Content-Encoding {encoding}; got {} with {}.",
        shown(&found_type),
        shown(&found_encoding)
    );
    Err(Refusal::new(Reason::UnsupportedMediaType, detail))
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Vec<u8>, Refusal> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut kept = Vec::with_capacity(declared.unwrap_or(0).min(limit));
    let mut seen = 0_usize;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Refusal::new(Reason::Malformed, format!("The body broke off: {error}.")))?;
        seen = seen.saturating_add(chunk.len());
        if seen.max(declared.unwrap_or(0)) <= limit {
            kept.extend_from_slice(&chunk);
        } else if seen > DRAIN_BYTES || declared.is_some_and(|declared| declared > DRAIN_BYTES) {
            break;
        }
    }
    let size = seen.max(declared.unwrap_or(0));
    if size <= limit {
        return Ok(kept);
    }
    Err(Refusal::new(
        Reason::TooLarge,
        format!("The body has {size} bytes or more; {limit} are allowed. Send fewer heartbeats at once."),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_cut_off_at_its_limit_whatever_its_length_header_says() {
        let none = HeaderMap::new();
        let read = |bytes: usize, limit: usize| read(&none, Body::from(vec![1_u8; bytes]), limit);
        assert_eq!(read(10, 10).await.map(|body| body.len()).ok(), Some(10));
        assert_eq!(read(11, 10).await.map_err(|refusal| refusal.reason).err(), Some(Reason::TooLarge));

        let mut lying = HeaderMap::new();
        lying.insert(header::CONTENT_LENGTH, 1_000_000_u32.into());
        let refusal = super::read(&lying, Body::from("short"), 10).await.map_err(|refusal| refusal.reason);
        assert_eq!(refusal.err(), Some(Reason::TooLarge));
    }

    #[test]
    fn type_and_encoding_must_both_be_right() {
        let headers = |pairs: &[(HeaderName, &'static str)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.clone(), axum::http::HeaderValue::from_static(value)))
                .collect::<HeaderMap>()
        };
        let json = headers(&[(header::CONTENT_TYPE, "Application/JSON; charset=utf-8")]);
        assert!(require_type(&json, "application/json", "identity").is_ok());
        assert!(require_type(&json, "application/json", "zstd").is_err());
        assert!(require_type(&HeaderMap::new(), "application/json", "identity").is_err());
        let zipped = headers(&[(header::CONTENT_TYPE, "application/json"), (header::CONTENT_ENCODING, "gzip")]);
        assert!(require_type(&zipped, "application/json", "identity").is_err());
    }
}
