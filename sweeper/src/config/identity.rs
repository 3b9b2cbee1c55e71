//! Settings of how nodes prove who they are.

use super::duration;
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
}

impl Default for IdentityConfig {
    fn default() -> Self {
        Self { node_token_lifetime: Duration::from_secs(3_600), audience: None }
    }
}

impl IdentityConfig {
    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        if !(SHORTEST_LIFETIME..=LONGEST_LIFETIME).contains(&self.node_token_lifetime) {
            return Some(("identity.node_token_lifetime", "must be from 10s to 7d".to_owned()));
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
