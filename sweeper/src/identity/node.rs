//! A node that joined, as it is known.

use super::{Attestation, Identity};
use heartbeat::NodeId;
use jiff::Timestamp;

/// A node that joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Who it is.
    pub node_id: NodeId,
    /// The kernel's node name when it last joined.
    pub hostname: String,
    /// Version of its agent when it last joined.
    pub agent_version: String,
    /// When it first joined.
    pub joined_at: Timestamp,
    /// When its last heartbeats were received; `None` if none ever were.
    pub last_seen_at: Option<Timestamp>,
    /// How it is attested.
    pub attestation: Attestation,
    /// The key that is bound to it.
    pub binding: Option<Binding>,
    /// Since when somebody else claims to be this node, and how that showed.
    pub disputed: Option<(Timestamp, String)>,
    /// When it was revoked, if it has not joined since.
    pub revoked_at: Option<Timestamp>,
    /// When heartbeats of its were refused, and why, if none were received since.
    pub refused: Option<(Timestamp, String)>,
}

/// A key that is bound to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Ed25519, in hexadecimal digits.
    pub public_key: String,
    /// Since when.
    pub since: Timestamp,
}

impl Node {
    /// Who speaks for it, as a judgement needs to know it.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let disputed_since_unix_ms = self.disputed.as_ref().map(|(since, _)| since.as_millisecond());
        Identity { attestation: self.attestation, disputed_since_unix_ms }
    }
}
