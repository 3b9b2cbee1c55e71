//! EC2: the instance identity document, through IMDSv2 (a session token first; version 1 is never used).
//!
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>

use super::{Identity, MetadataError, ask, sigv4::Credentials};
use crate::config::Surroundings;
use secrecy::SecretString;
use std::time::Duration;

const IPV4: &str = "http://169.254.169.254";
const IPV6: &str = "http://[fd00:ec2::254]";

/// Where the metadata service is and whether it may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Without a trailing slash.
    pub endpoint: String,
    /// A person named the endpoint (`AWS_EC2_METADATA_SERVICE_ENDPOINT`), so it is expected to answer.
    pub overridden: bool,
    /// `AWS_EC2_METADATA_DISABLED=true`.
    pub disabled: bool,
}

impl Settings {
    /// From the variables that all AWS tools share.
    #[must_use]
    pub fn from_variables(surroundings: &Surroundings) -> Self {
        let named = surroundings.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let is = |name, word: &str| surroundings.variable(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
        let default = if is("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6") { IPV6 } else { IPV4 };
        Self {
            endpoint: named.unwrap_or(default).trim_end_matches('/').to_owned(),
            overridden: named.is_some(),
            disabled: is("AWS_EC2_METADATA_DISABLED", "true"),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    account_id: String,
    region: String,
    instance_id: String,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Session {
    access_key_id: String,
    secret_access_key: String,
    token: String,
}

/// Asks who this is.
///
/// # Errors
/// If the service does not answer in time and in shape.
pub async fn identify(settings: &Settings, timeout: Duration) -> Result<Identity, MetadataError> {
    let (url, document) = read(settings, "dynamic/instance-identity/document", timeout).await?;
    let unexpected = |why: String| MetadataError::Unexpected { url: url.clone(), why };
    let document: Document = serde_json::from_str(&document).map_err(|error| unexpected(error.to_string()))?;
    let node_id = format!("aws:{}:{}:{}", document.account_id, document.region, document.instance_id);
    let node_id = node_id.parse().map_err(|error: heartbeat::IdentityError| unexpected(error.to_string()))?;
    Ok(Identity { node_id, source: "EC2's metadata service".to_owned() })
}

/// Asks for the document as EC2 signed it: PKCS #7, RSA-2048 and SHA-256, in base64.
///
/// # Errors
/// If the service does not answer in time.
pub async fn signed_document(settings: &Settings, timeout: Duration) -> Result<String, MetadataError> {
    Ok(read(settings, "dynamic/instance-identity/rsa2048", timeout).await?.1)
}

/// Asks for the session of the instance's role; none if it has none.
pub(super) async fn credentials(settings: &Settings, timeout: Duration) -> Result<Option<Credentials>, MetadataError> {
    const ROLES: &str = "meta-data/iam/security-credentials";
    let role = match read(settings, &format!("{ROLES}/"), timeout).await {
        Ok((_, role)) => role.trim().to_owned(),
        Err(MetadataError::Status { status: 404, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (url, session) = read(settings, &format!("{ROLES}/{role}"), timeout).await?;
    let session: Session = serde_json::from_str(&session)
        .map_err(|error| MetadataError::Unexpected { url, why: format!("no session: {error}") })?;
    Ok(Some(Credentials {
        access_key_id: session.access_key_id,
        secret_access_key: SecretString::from(session.secret_access_key),
        session_token: session.token,
    }))
}

/// Asks for a token, then for what is at a path; returns its address, too.
async fn read(settings: &Settings, path: &str, timeout: Duration) -> Result<(String, String), MetadataError> {
    let url = format!("{}/latest/{path}", settings.endpoint);
    let work = async {
        let client = crate::http::metadata_client(timeout)
            .map_err(|error| MetadataError::Unexpected { url: url.clone(), why: error.to_string() })?;
        let token = client
            .put(format!("{}/latest/api/token", settings.endpoint))
            .header("X-aws-ec2-metadata-token-ttl-seconds", "60");
        let (_, token) = ask(token).await?;
        let (_, text) = ask(client.get(&url).header("X-aws-ec2-metadata-token", token.trim())).await?;
        Ok(text)
    };
    let text = tokio::time::timeout(timeout, work)
        .await
        .unwrap_or_else(|_| Err(MetadataError::NoAnswer { url: url.clone(), why: "timed out".to_owned() }))?;
    Ok((url, text))
}
