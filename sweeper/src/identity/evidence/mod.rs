//! What clouds say of their machines, and whether it is they who say it.
//!
//! Evidence is verified only where a join secret or the node's own key was shown: it says which machine, and never who may speak for it.
//! What is known of accounts and instances is the caller's to compare. Cost: one RSA verification (30 µs), and for Google at most one
//! request a minute for its keys.

mod certificates;
mod document;
mod google_keys;
mod pkcs7;
mod sts;
mod token;

pub use certificates::CertificateError;
pub use google_keys::GOOGLE_KEYS_URL;

use super::Attestation;
use certificates::Certificates;
use google_keys::{GoogleKeys, Source};
use heartbeat::{NodeId, attestation::Evidence};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use token::Token;

/// A kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// EC2's signed instance identity document.
    AwsIid,
    /// A presigned `sts:GetCallerIdentity` of the instance's role.
    AwsSts,
    /// Compute Engine's instance identity token.
    GcpToken,
}

impl Kind {
    /// Its word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AwsIid => Evidence::AWS_IID,
            Self::AwsSts => Evidence::AWS_STS,
            Self::GcpToken => Evidence::GCP_TOKEN,
        }
    }

    fn of(evidence: &Evidence) -> Self {
        match evidence {
            Evidence::AwsIid { .. } => Self::AwsIid,
            Evidence::AwsSts { .. } => Self::AwsSts,
            Evidence::GcpToken { .. } => Self::GcpToken,
        }
    }
}

/// Why evidence proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// Evidence of this kind is not verified here.
    #[error("this sweeper does not verify evidence of this kind (`identity.evidence`)")]
    NotAccepted,
    /// It is not what it says it is.
    #[error("{0}")]
    Malformed(&'static str),
    /// It is not signed by the one who should have.
    #[error("the evidence is not signed by the cloud's key")]
    Forged,
    /// No certificate of that region is known.
    #[error("no certificate of EC2's is known for {region}; `identity.aws_certificates` adds one")]
    UnknownCertificate {
        /// The region.
        region: String,
    },
    /// Google has no such key, or no more.
    #[error("the token names a key that Google does not publish")]
    UnknownKey,
    /// It speaks of another machine than the node.
    #[error("the evidence is of another machine than this node: {0}")]
    ForeignInstance(String),
    /// It was made for somebody else.
    #[error("the token was made for another audience")]
    WrongAudience,
    /// Its time is over, or has not come.
    #[error("the token has expired, or is of the future")]
    Expired,
    /// What is needed to verify it is not to be had now.
    #[error("{0}; try again later")]
    Unavailable(&'static str),
}

/// What evidence is verified with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Kinds that are verified, best first.
    pub kinds: Vec<Kind>,
    /// A folder of more certificates of EC2's.
    pub aws_certificates: Option<PathBuf>,
    /// This sweeper's address as its agents know it.
    pub audience: Option<String>,
    /// An address or a file of Google's keys.
    pub google_keys: String,
    /// An address in place of AWS's own Security Token Service in every region.
    pub sts_endpoint: Option<String>,
}

/// What verified evidence says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How it attests that its machine is the node.
    pub attestation: Attestation,
    /// The role whose session speaks, which must be that of the instance.
    pub role: Option<String>,
}

/// Verifies evidence.
#[derive(Debug)]
pub struct Verifier {
    kinds: Vec<Kind>,
    certificates: Certificates,
    audience: Option<String>,
    google_keys: GoogleKeys,
    sts_endpoint: Option<String>,
}

impl Verifier {
    /// Reads the certificates.
    ///
    /// # Errors
    /// If those of the configuration cannot be read.
    pub fn new(settings: Settings) -> Result<Self, CertificateError> {
        let Settings { kinds, aws_certificates, audience, google_keys, sts_endpoint } = settings;
        let source =
            if google_keys.starts_with('/') { Source::File(google_keys.into()) } else { Source::Address(google_keys) };
        let certificates = Certificates::load(aws_certificates.as_deref())?;
        Ok(Self { kinds, certificates, audience, google_keys: GoogleKeys::new(source), sts_endpoint })
    }

    /// Kinds of evidence that could be verified for this node, best first.
    #[must_use]
    pub fn asks(&self, node: &NodeId) -> Vec<Kind> {
        let applies = |kind: &Kind| match (kind, node) {
            (Kind::AwsIid, NodeId::Aws { region, .. }) => !self.certificates.of(region).is_empty(),
            (Kind::AwsSts, NodeId::Aws { region, .. }) => {
                self.audience.is_some() && !self.certificates.of(region).is_empty()
            }
            (Kind::GcpToken, NodeId::Gcp { .. }) => self.audience.is_some(),
            _ => false,
        };
        self.kinds.iter().copied().filter(applies).collect()
    }

    /// What evidence that was shown with a challenge says of its machine being this node.
    ///
    /// # Errors
    /// See [`EvidenceError`].
    pub async fn verify(
        &self,
        evidence: &Evidence,
        node: &NodeId,
        challenge: &str,
        now: Timestamp,
    ) -> Result<Verified, EvidenceError> {
        if !self.kinds.contains(&Kind::of(evidence)) {
            return Err(EvidenceError::NotAccepted);
        }
        let audience = || self.audience.as_deref().ok_or(EvidenceError::NotAccepted);
        let (attestation, role) = match evidence {
            Evidence::AwsIid { pkcs7 } => {
                document::verify(pkcs7, node, &self.certificates)?;
                (Attestation::AwsIid, None)
            }
            Evidence::AwsSts { time, session_token, authorization } => {
                let signed = sts::Signed { time, session_token, authorization };
                self.published_region(node)?;
                let endpoint = self.sts_endpoint.as_deref();
                let role = sts::role(&signed, node, audience()?, challenge, endpoint).await?;
                (Attestation::AwsSts, Some(role))
            }
            Evidence::GcpToken { token } => {
                let audience = audience()?;
                let token = Token::parse(token)?;
                let key = self.google_keys.key(&token.key_id).await?;
                token.verify(&key, node, audience, now)?;
                (Attestation::GcpToken, None)
            }
        };
        Ok(Verified { attestation, role })
    }

    /// Nothing is sent to a host that is built from a region's name unless there is such a region.
    fn published_region(&self, node: &NodeId) -> Result<(), EvidenceError> {
        match node {
            NodeId::Aws { region, .. } if self.certificates.of(region).is_empty() => {
                Err(EvidenceError::UnknownCertificate { region: region.clone() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/lab/ec2_signature.rs"]
#[expect(unreachable_pub, reason = "it is a module of the laboratory, too")]
pub(crate) mod signer;
