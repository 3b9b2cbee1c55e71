//! Settings of how nodes prove who they are.

use super::duration;
use crate::identity::evidence::{GOOGLE_KEYS_URL, Kind, Settings};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

const SHORTEST_LIFETIME: Duration = Duration::from_secs(10);
const LONGEST_LIFETIME: Duration = Duration::from_secs(7 * 86_400);

/// `[identity]`: how nodes prove who they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdentityConfig {
    /// How long the token of a node with a key is good for. The node renews it by its key.
    #[serde(with = "duration")]
    pub node_token_lifetime: Duration,
    /// What agents have as `sweeper_url`; a proof for another address is refused. By default this is not checked.
    pub audience: Option<String>,
    /// Kinds of evidence that are asked for and verified, best first.
    pub evidence: Vec<Kind>,
    /// AWS accounts and Google projects whose machines may show evidence, beside those that are swept.
    pub accounts: Vec<String>,
    /// A folder of more certificates of EC2's, `REGION.pem`.
    pub aws_certificates: Option<PathBuf>,
    /// Where Google's keys are: an address, or a file where that is out of reach.
    pub google_keys: String,
}

impl Default for IdentityConfig {
    fn default() -> Self {
        Self {
            node_token_lifetime: Duration::from_secs(3_600),
            audience: None,
            evidence: vec![Kind::AwsIid, Kind::GcpToken],
            accounts: Vec::new(),
            aws_certificates: None,
            google_keys: GOOGLE_KEYS_URL.to_owned(),
        }
    }
}

impl IdentityConfig {
    /// What evidence is verified with.
    #[must_use]
    pub fn verifier(&self) -> Settings {
        Settings {
            kinds: self.evidence.clone(),
            aws_certificates: self.aws_certificates.clone(),
            audience: self.audience.clone(),
            google_keys: self.google_keys.clone(),
            sts_endpoint: None,
        }
    }

    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        if !(SHORTEST_LIFETIME..=LONGEST_LIFETIME).contains(&self.node_token_lifetime) {
            return Some(("identity.node_token_lifetime", "must be from 10s to 7d".to_owned()));
        }
        if !self.google_keys.starts_with("https://") && !self.google_keys.starts_with('/') {
            return Some((
                "identity.google_keys",
                "must begin with https://, or be the whole path of a file".to_owned(),
            ));
        }
        let is_address = |text: &str| text.starts_with("https://") || text.starts_with("http://");
        match &self.audience {
            Some(text) if !is_address(text) => Some((
                "identity.audience",
                "must begin with https:// or http://, as `sweeper_url` of the agents".to_owned(),
            )),
            _ => None,
        }
    }
}
