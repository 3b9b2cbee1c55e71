//! The four requests of the agent.

use super::answer::Received;
use heartbeat::api::{
    CHALLENGE_PATH, CONTENT_ENCODING, CONTENT_TYPE, ChallengeRequest, HEARTBEATS_PATH, JOIN_PATH, RULES_PATH,
    SIGNATURE_HEADER,
};
use reqwest::header;
use secrecy::{ExposeSecret as _, SecretString};
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

    /// The address of the sweeper, without a trailing slash.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks for what the next join must carry.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn challenge(&self, request: &ChallengeRequest) -> Result<Received, String> {
        let request = self.http.post(format!("{}{CHALLENGE_PATH}", self.base)).json(request);
        Self::exchange(request, MOST_ANSWER_BYTES).await
    }

    /// Asks to be known: `body` is a join request in JSON, signed or with a join secret, or both.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn join(
        &self,
        body: Vec<u8>,
        signature: Option<&str>,
        join_secret: Option<&SecretString>,
    ) -> Result<Received, String> {
        let request = self.http.post(format!("{}{JOIN_PATH}", self.base));
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        let request = signature.into_iter().fold(request, |request, text| request.header(SIGNATURE_HEADER, text));
        let request =
            join_secret.into_iter().fold(request, |request, secret| request.bearer_auth(secret.expose_secret()));
        Self::exchange(request, MOST_ANSWER_BYTES).await
    }

    /// Sends an encoded envelope.
    ///
    /// # Errors
    /// If no whole answer came; whether the heartbeats were stored is then unknown.
    pub async fn send(&self, envelope: Vec<u8>, node_token: &SecretString) -> Result<Received, String> {
        let request = self
            .http
            .post(format!("{}{HEARTBEATS_PATH}", self.base))
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header(header::CONTENT_ENCODING, CONTENT_ENCODING)
            .body(envelope);
        Self::exchange(request.bearer_auth(node_token.expose_secret()), MOST_ANSWER_BYTES).await
    }

    /// Asks for the rules file, unless it is the one with this SHA-256.
    ///
    /// # Errors
    /// If no whole answer came.
    pub async fn rules(&self, node_token: &SecretString, known_sha256: &str) -> Result<Received, String> {
        let request = self.http.get(format!("{}{RULES_PATH}", self.base));
        let request = request.header(header::IF_NONE_MATCH, format!("\"{known_sha256}\""));
        // One byte more than is allowed shows that the file is too long.
        Self::exchange(request.bearer_auth(node_token.expose_secret()), workload_rules::MAX_FILE_BYTES + 1).await
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
