//! Compute Engine: project, zone and instance id from the metadata server.
//!
//! <https://cloud.google.com/compute/docs/metadata/querying-metadata>: both the question and the answer must carry
//! `Metadata-Flavor: Google`.

use super::{Identity, MetadataError, ask};
use crate::config::Surroundings;
use std::time::Duration;

/// The address behind `metadata.google.internal`, so that no name has to be resolved.
const ADDRESS: &str = "169.254.169.254";
const FLAVOR: (&str, &str) = ("Metadata-Flavor", "Google");

/// Where the metadata server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Host, and port if it has one.
    pub host: String,
    /// A person named the host (`GCE_METADATA_HOST`), so it is expected to answer.
    pub overridden: bool,
}

impl Settings {
    /// From the variable that all Google tools share.
    #[must_use]
    pub fn from_variables(surroundings: &Surroundings) -> Self {
        let named = surroundings.variable("GCE_METADATA_HOST");
        Self { host: named.unwrap_or(ADDRESS).trim_end_matches('/').to_owned(), overridden: named.is_some() }
    }
}

/// Asks for the three parts of the instance's name at once.
///
/// # Errors
/// If the server does not answer all in time and in shape.
pub async fn identify(settings: &Settings, timeout: Duration) -> Result<Identity, MetadataError> {
    let get = |path: &'static str| read(settings, path, &[], timeout);
    let (project, zone, instance) =
        tokio::try_join!(get("project/project-id"), get("instance/zone"), get("instance/id"))?;
    // `projects/123456789/zones/europe-west3-a`
    let zone = zone.trim().rsplit('/').next().unwrap_or_default();
    let node_id = format!("gcp:{}:{zone}:{}", project.trim(), instance.trim());
    let node_id = node_id.parse().map_err(|error: heartbeat::IdentityError| MetadataError::Unexpected {
        url: base(settings),
        why: error.to_string(),
    })?;
    Ok(Identity { node_id, source: "Compute Engine's metadata service".to_owned() })
}

/// Asks for a token that says to this audience which instance this is. It is good for an hour.
///
/// # Errors
/// If the server does not answer in time and in shape.
pub async fn identity_token(settings: &Settings, audience: &str, timeout: Duration) -> Result<String, MetadataError> {
    let query = [("audience", audience), ("format", "full")];
    let token = read(settings, "instance/service-accounts/default/identity", &query, timeout).await?;
    Ok(token.trim().to_owned())
}

fn base(settings: &Settings) -> String {
    format!("http://{}/computeMetadata/v1", settings.host)
}

async fn read(
    settings: &Settings,
    path: &str,
    query: &[(&str, &str)],
    timeout: Duration,
) -> Result<String, MetadataError> {
    let url = format!("{}/{path}", base(settings));
    let unexpected = |why: String| MetadataError::Unexpected { url: url.clone(), why };
    let work = async {
        let client = crate::http::metadata_client(timeout).map_err(|error| unexpected(error.to_string()))?;
        let mut full = reqwest::Url::parse(&url).map_err(|error| unexpected(error.to_string()))?;
        if !query.is_empty() {
            full.query_pairs_mut().extend_pairs(query);
        }
        let (headers, text) = ask(client.get(full).header(FLAVOR.0, FLAVOR.1)).await?;
        match headers.get(FLAVOR.0).map(|value| value.as_bytes() == FLAVOR.1.as_bytes()) {
            Some(true) => Ok(text),
            _ => Err(unexpected(format!("without the header {}: {}", FLAVOR.0, FLAVOR.1))),
        }
    };
    tokio::time::timeout(timeout, work)
        .await
        .unwrap_or_else(|_| Err(MetadataError::NoAnswer { url: url.clone(), why: "timed out".to_owned() }))
}
