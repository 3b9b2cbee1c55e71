//! What this machine's cloud says of it, of a kind that the sweeper asks for.
//!
//! Evidence is shown beside the join secret and the node's key, and replaces neither. Where the metadata service gives none, the node joins
//! without it and is not attested.

use super::{MetadataError, Settings, TIMEOUT, aws, gcp, sigv4};
use heartbeat::{NodeId, attestation::Evidence, sts};

/// The join that evidence is for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// Who joins.
    pub node: &'a NodeId,
    /// The sweeper's address, as the configuration has it.
    pub audience: &'a str,
    /// The challenge that it gave.
    pub challenge: &'a str,
}

/// The first kind asked for that can be had; at most 3 s for each.
pub async fn gather(asked: &[String], settings: &Settings, purpose: Purpose<'_>) -> Option<Evidence> {
    for kind in asked {
        match of_kind(kind, settings, purpose).await {
            Ok(Some(evidence)) => return Some(evidence),
            Ok(None) => tracing::debug!(kind, "this machine or this agent has no evidence of this kind"),
            Err(error) => {
                tracing::warn!(kind, %error, "no evidence of which machine this is; without it this node is not attested");
            }
        }
    }
    None
}

async fn of_kind(kind: &str, settings: &Settings, purpose: Purpose<'_>) -> Result<Option<Evidence>, MetadataError> {
    Ok(match kind {
        Evidence::AWS_IID => Some(Evidence::AwsIid { pkcs7: aws::signed_document(&settings.aws, TIMEOUT).await? }),
        Evidence::AWS_STS => aws::credentials(&settings.aws, TIMEOUT).await?.and_then(|of| signed(&of, purpose)),
        Evidence::GCP_TOKEN => {
            Some(Evidence::GcpToken { token: gcp::identity_token(&settings.gcp, purpose.audience, TIMEOUT).await? })
        }
        _ => None,
    })
}

fn signed(of: &sigv4::Credentials, purpose: Purpose<'_>) -> Option<Evidence> {
    let NodeId::Aws { region, .. } = purpose.node else { return None };
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let host = sts::host(region);
    let headers = sts::headers(&host, &time, &of.session_token, purpose.audience, purpose.challenge);
    let scope = sigv4::Scope { time: &time, region, service: "sts" };
    let authorization = sigv4::authorization(of, scope, &headers, sts::BODY);
    Some(Evidence::AwsSts { time, session_token: of.session_token.clone(), authorization })
}
