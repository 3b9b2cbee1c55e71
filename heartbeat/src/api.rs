//! Paths, bodies and headers of the agent-facing HTTP interface.

use crate::{BootId, NodeId, attestation::Proof};
use serde::{Deserialize, Serialize};

/// `POST` of a [`ChallengeRequest`], without a token; answers with a [`Challenge`].
pub const CHALLENGE_PATH: &str = "/v1/nodes/challenge";
/// `POST` of a [`JoinRequest`]; answers with a [`JoinResponse`]. A node that has no bound key sends a join secret (a fleet token or a join
/// token) as bearer token; one that has proves that key ([`Proof`]) and needs none.
pub const JOIN_PATH: &str = "/v1/nodes/join";
/// Header of a join with a [`Proof`]: the Ed25519 signature of [`crate::attestation::signed_text`] of the body, in hexadecimal digits.
pub const SIGNATURE_HEADER: &str = "x-node-signature";
/// `POST` of an encoded [`crate::wire::Envelope`] with the node token as bearer token; answers with an [`Ack`].
pub const HEARTBEATS_PATH: &str = "/v1/heartbeats";
/// `GET` with the node token as bearer token: the rules file that an [`Ack`] offers, as TOML. Its `ETag` is the file's
/// SHA-256 in hexadecimal digits.
pub const RULES_PATH: &str = "/v1/rules";
/// Content type of a rules file.
pub const RULES_TYPE: &str = "application/toml";
/// Content type of an encoded envelope. It is always compressed; `Content-Encoding` is [`CONTENT_ENCODING`].
pub const CONTENT_TYPE: &str = "application/x-protobuf";
/// Content encoding of an envelope.
pub const CONTENT_ENCODING: &str = "zstd-heartbeat-v1";
/// Content type of a [`Problem`].
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// A node asks for a challenge that its next join answers. What a later agent says besides is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeRequest {
    /// Who will answer it.
    pub node_id: NodeId,
}

/// A text that one join of one node must carry, so that a recorded join is worth nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// To be repeated in [`Proof::challenge`], once.
    pub challenge: String,
    /// How long it is good for, in seconds.
    pub expires_in_s: u64,
    /// Kinds of evidence that the sweeper would verify for a node of this cloud and region, whether its account is swept or not, best first
    /// ([`crate::attestation::Evidence::kind`]). Words that an agent does not know are for later ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// A node asks to be known. What a later agent says besides is left out, and no reason to refuse it: an older sweeper would lock it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Who it says it is.
    pub node_id: NodeId,
    /// Its present boot.
    pub boot_id: BootId,
    /// The kernel's node name, for people.
    pub hostname: String,
    /// Version of the agent.
    pub agent_version: String,
    /// The node's key and what it proves; absent from agents that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// The node is known from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinResponse {
    /// Bearer token for this node and no other. An earlier token of the same node is void, unless both of them expire.
    pub node_token: String,
    /// After how many seconds the token expires; absent if it does not, because the node has no key to renew it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
    /// Highest sequence of this boot that is already stored; 0 if none. The agent goes on from there.
    pub last_sequence: u64,
}

/// What became of the heartbeats of one envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The boot that this speaks of.
    pub boot_id: BootId,
    /// Every sequence up to this one is stored or, by the sender's own word, lost for good. The agent may forget them.
    pub contiguous_sequence: u64,
    /// How many heartbeats of this envelope were new.
    pub stored: u32,
    /// How many were known already.
    pub duplicates: u32,
    /// The rules that the node should follow; absent from a sweeper that knows nothing of rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesOffer>,
    /// The agent is to take a sample at once and to put this into it ([`crate::wire::Heartbeat::answers`]): whoever asked wants to know what the node does
    /// now. 32 hexadecimal digits; absent if nobody asks, and not heeded twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// Whether a text is a question: 32 lower-case hexadecimal digits.
#[must_use]
pub fn is_question(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The rules that a sweeper wants its nodes to follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RulesOffer {
    /// Those that are built into each agent.
    BuiltIn,
    /// The file at [`RULES_PATH`].
    File {
        /// As the file says it, for people.
        version: String,
        /// SHA-256 of the file, in hexadecimal digits: whoever has it need not fetch it.
        sha256: String,
    },
}

/// Why a request was refused (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable word for programs, for example `clock_skew`.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status.
    pub status: u16,
    /// One line for people.
    pub title: String,
    /// What exactly was wrong and what to do.
    pub detail: String,
}
