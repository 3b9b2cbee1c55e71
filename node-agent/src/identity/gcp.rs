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
    let base = format!("http://{}/computeMetadata/v1", settings.host);
    let unexpected = |why: String| MetadataError::Unexpected { url: base.clone(), why };
    let work = async {
        let client = crate::http::metadata_client(timeout).map_err(|error| unexpected(error.to_string()))?;
        let get = |path: &str| {
            let request = client.get(format!("{base}/{path}")).header(FLAVOR.0, FLAVOR.1);
            async {
                let (headers, text) = ask(request).await?;
                match headers.get(FLAVOR.0).map(|value| value.as_bytes() == FLAVOR.1.as_bytes()) {
                    Some(true) => Ok(text),
                    _ => Err(unexpected(format!("without the header {}: {}", FLAVOR.0, FLAVOR.1))),
                }
            }
        };
        let (project, zone, instance) =
            tokio::try_join!(get("project/project-id"), get("instance/zone"), get("instance/id"))?;
        // `projects/123456789/zones/europe-west3-a`
        let zone = zone.trim().rsplit('/').next().unwrap_or_default();
        let node_id = format!("gcp:{}:{zone}:{}", project.trim(), instance.trim());
        let node_id = node_id.parse().map_err(|error: heartbeat::IdentityError| unexpected(error.to_string()))?;
        Ok(Identity { node_id, source: "Compute Engine's metadata service".to_owned() })
    };
    tokio::time::timeout(timeout, work)
        .await
        .unwrap_or_else(|_| Err(MetadataError::NoAnswer { url: base.clone(), why: "timed out".to_owned() }))
}
