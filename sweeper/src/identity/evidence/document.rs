//! EC2's instance identity document: says which machine it was given to, for as long as that machine exists.
//!
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html>

use super::{EvidenceError, certificates::Certificates, pkcs7};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use heartbeat::{NodeId, attestation::MAX_EVIDENCE_BYTES};
use serde::Deserialize;

/// A field that appears twice is an error, so that no two readers see two documents in one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    account_id: String,
    region: String,
    instance_id: String,
}

/// Whether EC2 signed a document for this node.
pub(super) fn verify(pkcs7: &str, node: &NodeId, certificates: &Certificates) -> Result<(), EvidenceError> {
    let NodeId::Aws { region, .. } = node else { return Err(EvidenceError::ForeignInstance("an EC2 instance".into())) };
    let keys = certificates.of(region);
    if keys.is_empty() {
        return Err(EvidenceError::UnknownCertificate { region: region.clone() });
    }
    if pkcs7.len() > MAX_EVIDENCE_BYTES {
        return Err(EvidenceError::Malformed("the document is too long"));
    }
    let text = pkcs7.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>();
    let message = STANDARD.decode(text).map_err(|_| EvidenceError::Malformed("the document is not in base64"))?;
    let content = pkcs7::verified_content(&message, keys).map_err(|error| match error {
        pkcs7::Pkcs7Error::Malformed => EvidenceError::Malformed("the document is no message of EC2's kind"),
        pkcs7::Pkcs7Error::Forged => EvidenceError::Forged,
    })?;
    let of: Document = serde_json::from_slice(&content)
        .map_err(|_| EvidenceError::Malformed("the document does not name account, region and instance once each"))?;
    let shown = format!("aws:{}:{}:{}", of.account_id, of.region, of.instance_id);
    if shown == node.to_string() { Ok(()) } else { Err(EvidenceError::ForeignInstance(shown)) }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
