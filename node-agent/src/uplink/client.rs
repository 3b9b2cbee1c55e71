//! The three requests of the agent.

use super::answer::Received;
use crate::config::Secret;
use heartbeat::api::{CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH, JOIN_PATH, JoinRequest, RULES_PATH};
use reqwest::header;
use std::time::Duration;

/// Time for one request, from the first packet to the last. A sweeper that is alive answers within a fraction of it.
const TIMEOUT: Duration = Duration::from_secs(20);
const MOST_ANSWER_BYTES: usize = 64 * 1024;

/// Speaks to one sweeper.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// For the sweeper at this address (without a trailing slash).
    ///
    /// # Errors
    /// For `https`, if this host has no root certificates.
    pub fn new(sweeper_url: &str) -> reqwest::Result<Self> {
        Ok(Self { http: crate::http::sweeper_client(sweeper_url, TIMEOUT)?, base: sweeper_url.to_owned() })
    }

    /// Asks to be known.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn join(&self, request: &JoinRequest, join_token: &Secret) -> Result<Received, String> {
        let request = self.http.post(format!("{}{JOIN_PATH}", self.base)).json(request);
        Self::exchange(request.bearer_auth(join_token.reveal()), MOST_ANSWER_BYTES).await
    }

    /// Sends an encoded envelope.
    ///
    /// # Errors
    /// If no whole answer came; whether the heartbeats were stored is then unknown.
    pub async fn send(&self, envelope: Vec<u8>, node_token: &Secret) -> Result<Received, String> {
        let request = self
            .http
            .post(format!("{}{HEARTBEATS_PATH}", self.base))
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header(header::CONTENT_ENCODING, CONTENT_ENCODING)
            .body(envelope);
        Self::exchange(request.bearer_auth(node_token.reveal()), MOST_ANSWER_BYTES).await
    }

    /// Asks for the rules file, unless it is the one with this SHA-256.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn rules(&self, node_token: &Secret, known_sha256: &str) -> Result<Received, String> {
        let request = self.http.get(format!("{}{RULES_PATH}", self.base));
        let request = request.header(header::IF_NONE_MATCH, format!("\"{known_sha256}\""));
        // One byte more than is allowed shows that the file is too long.
        Self::exchange(request.bearer_auth(node_token.reveal()), workload_rules::MAX_FILE_BYTES + 1).await
    }

    async fn exchange(request: reqwest::RequestBuilder, most_bytes: usize) -> Result<Received, String> {
        let response = request.send().await.map_err(|error| crate::http::chain(&error))?;
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
        let asked = text(header::RETRY_AFTER);
        let retry_after = asked.and_then(|value| super::backoff::retry_after(&value, jiff::Timestamp::now()));
        let status = response.status().as_u16();
        let body = crate::http::read_limited(response, most_bytes).await;
        let body = body.map_err(|error| crate::http::chain(&error))?;
        Ok(Received { status, content_type, retry_after, body })
    }
}
