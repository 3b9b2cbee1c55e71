//! Google's instance identity token: a JSON Web Token that the metadata server signs for the one audience that was asked for.
//!
//! <https://cloud.google.com/compute/docs/instances/verifying-instance-identity>. One algorithm (RS256), one issuer, three fields in the
//! header: what else a JSON Web Token could be (`none`, HMAC, keys or addresses of keys in the header, `crit`) is refused unread.

use super::EvidenceError;
use aws_lc_rs::{rsa::PublicKeyComponents, signature::RSA_PKCS1_2048_8192_SHA256};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use heartbeat::{NodeId, attestation::MAX_EVIDENCE_BYTES};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};

const ISSUER: &str = "https://accounts.google.com";
/// How far Google's clock and this one may differ.
const SKEW: SignedDuration = SignedDuration::from_secs(60);

/// A public key of Google's.
pub(super) type Key = PublicKeyComponents<Vec<u8>>;

/// A token whose signature is not checked yet.
pub(super) struct Token<'a> {
    /// Which key it says signed it.
    pub(super) key_id: String,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    kid: String,
    #[serde(default)]
    typ: Option<String>,
}

/// A field that appears twice is an error.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    iat: i64,
    exp: i64,
    google: Google,
}

#[derive(Deserialize)]
struct Google {
    compute_engine: ComputeEngine,
}

#[derive(Deserialize)]
struct ComputeEngine {
    project_id: String,
    zone: String,
    instance_id: String,
}

fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

impl<'a> Token<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, EvidenceError> {
        let malformed = || EvidenceError::Malformed("the token is no JSON Web Token signed by RS256");
        if text.len() > MAX_EVIDENCE_BYTES {
            return Err(EvidenceError::Malformed("the token is too long"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or_else(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or_else(malformed)?;
        let header: Header = part(header).ok_or_else(malformed)?;
        if header.alg != "RS256" || header.typ.is_some_and(|kind| kind != "JWT") {
            return Err(malformed());
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed())?;
        Ok(Self { key_id: header.kid, signed, claims, signature })
    }

    /// Whether Google signed it with this key for this node and audience, and it has not expired.
    pub(super) fn verify(&self, key: &Key, node: &NodeId, audience: &str, now: Timestamp) -> Result<(), EvidenceError> {
        key.verify(&RSA_PKCS1_2048_8192_SHA256, self.signed.as_bytes(), &self.signature)
            .map_err(|_| EvidenceError::Forged)?;
        let of: Claims = part(self.claims)
            .ok_or(EvidenceError::Malformed("the token does not name an instance in format `full`"))?;
        if of.iss != ISSUER {
            return Err(EvidenceError::Malformed("the token's issuer is not Google"));
        }
        if of.aud.trim_end_matches('/') != audience.trim_end_matches('/') {
            return Err(EvidenceError::WrongAudience);
        }
        let skew = SKEW.as_secs();
        if of.exp <= now.as_second().saturating_sub(skew) || of.iat > now.as_second().saturating_add(skew) {
            return Err(EvidenceError::Expired);
        }
        let ComputeEngine { project_id, zone, instance_id } = of.google.compute_engine;
        let shown = format!("gcp:{project_id}:{zone}:{instance_id}");
        if shown == node.to_string() { Ok(()) } else { Err(EvidenceError::ForeignInstance(shown)) }
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
