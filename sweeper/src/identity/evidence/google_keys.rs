//! Google's public keys: from its address, kept for as long as the answer says, or from a file where that address is out of reach.
//!
//! One request at a time, and at most one a minute, whether it failed or lacked the key: whoever makes up key ids costs a look-up.

use super::{EvidenceError, token::Key};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use std::{collections::HashMap, path::PathBuf, time::Duration};
use tokio::{sync::Mutex, time::Instant};

/// Where Google publishes the keys of its identity tokens (`jwks_uri` of <https://accounts.google.com/.well-known/openid-configuration>).
pub const GOOGLE_KEYS_URL: &str = "https://www.googleapis.com/oauth2/v3/certs";
const PAUSE: Duration = Duration::from_secs(60);
const LONGEST_KEPT: Duration = Duration::from_secs(24 * 3_600);
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 64 * 1024;

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Address(String),
    File(PathBuf),
}

#[derive(Debug)]
pub(super) struct GoogleKeys {
    source: Source,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    keys: HashMap<String, Key>,
    good_until: Option<Instant>,
    asked_at: Option<Instant>,
    failed: Option<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct RsaKey {
    kid: String,
    kty: String,
    #[serde(default)]
    alg: Option<String>,
    n: String,
    e: String,
}

impl GoogleKeys {
    pub(super) fn new(source: Source) -> Self {
        Self { source, known: Mutex::default() }
    }

    /// The key of this id.
    pub(super) async fn key(&self, id: &str) -> Result<Key, EvidenceError> {
        let mut known = self.known.lock().await;
        let now = Instant::now();
        let is_fresh = known.good_until.is_some_and(|end| now < end);
        if let Some(key) = known.keys.get(id).filter(|_| is_fresh) {
            return Ok(key.clone());
        }
        if known.asked_at.is_none_or(|at| now.duration_since(at) >= PAUSE) {
            known.asked_at = Some(now);
            match self.fetch().await {
                Ok((keys, good_for)) => {
                    *known = Known { keys, good_until: Some(now + good_for), asked_at: Some(now), failed: None };
                }
                Err(why) => {
                    tracing::warn!(why, from = ?self.source, "Google's keys cannot be read");
                    known.failed = Some(why);
                }
            }
        }
        let is_fresh = known.good_until.is_some_and(|end| now < end);
        match (known.keys.get(id).filter(|_| is_fresh), &known.failed) {
            (Some(key), _) => Ok(key.clone()),
            (None, Some(_)) => Err(EvidenceError::Unavailable("Google's keys cannot be read")),
            (None, None) => Err(EvidenceError::UnknownKey),
        }
    }

    async fn fetch(&self) -> Result<(HashMap<String, Key>, Duration), String> {
        let (text, good_for) = match &self.source {
            Source::File(path) => {
                let text = tokio::fs::read(path).await.map_err(|error| format!("{}: {error}", path.display()))?;
                (text, PAUSE)
            }
            Source::Address(url) => download(url).await.map_err(|error| format!("{:#}", anyhow::Error::new(error)))?,
        };
        Ok((parse(&text).ok_or("the answer is no set of keys")?, good_for))
    }
}

async fn download(url: &str) -> reqwest::Result<(Vec<u8>, Duration)> {
    let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).build()?;
    let mut response = client.get(url).send().await?.error_for_status()?;
    let control = response.headers().get(reqwest::header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let good_for = max_age(control.unwrap_or_default()).clamp(PAUSE, LONGEST_KEPT);
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await?.filter(|_| text.len() <= MAX_BYTES) {
        text.extend_from_slice(&chunk);
    }
    Ok((text, good_for))
}

fn max_age(cache_control: &str) -> Duration {
    let seconds = cache_control.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// RFC 7517; keys of other kinds are left out.
fn parse(text: &[u8]) -> Option<HashMap<String, Key>> {
    let set: KeySet = serde_json::from_slice(text.get(..MAX_BYTES).unwrap_or(text)).ok()?;
    let rsa = |value| serde_json::from_value::<RsaKey>(value).ok();
    let keys = set.keys.into_iter().filter_map(rsa).filter_map(|key| {
        let number = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            Some(bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>())
        };
        let is_rs256 = key.kty == "RSA" && key.alg.as_deref().is_none_or(|alg| alg == "RS256");
        let components = Key { n: number(&key.n)?, e: number(&key.e)? };
        is_rs256.then_some((key.kid, components))
    });
    Some(keys.collect())
}

#[cfg(test)]
#[path = "google_keys_tests.rs"]
mod tests;
