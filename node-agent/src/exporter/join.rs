//! How the agent becomes known, and stays so: by the key that it made at its first join.
//!
//! The key alone comes first: the join secret leaves the host only if the sweeper asks for it, because no key is bound to this node. A token
//! is renewed when half to three quarters of its life are over, drawn at random so that a fleet does not renew in one second. A renewal is
//! two small requests an hour; measuring never waits for one.

use super::{Node, answer, client::Client};
use crate::{
    config::JoinToken,
    identity::{
        evidence::{self, Purpose},
        key::NodeKey,
    },
    state::{NodeToken, StateDir},
};
use heartbeat::{
    NodeId,
    api::{Challenge, ChallengeRequest, JoinRequest, JoinResponse},
    attestation::{Evidence, Proof},
};
use rand::Rng as _;
use secrecy::SecretString;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Time between two attempts to renew of which the first failed.
const PAUSE: Duration = Duration::from_secs(60);
/// The sweeper's word for: this key is not bound to this node.
const SECRET_REQUIRED: &str = "join_secret_required";

/// What a join came to.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) token: SecretString,
    /// Highest sequence of this boot that the sweeper has.
    pub(super) last_sequence: u64,
}

/// Why a join came to nothing.
#[derive(Debug)]
pub(super) enum NotJoined {
    /// The sweeper knows no challenges, and this agent has a token that works: there is nothing to gain.
    NoChallenges,
    /// The sweeper asks for a join secret: this key is not bound to this node.
    SecretRequired {
        /// For the log.
        why: String,
    },
    /// It did not work.
    Refused {
        /// For the log.
        why: String,
        /// What the sweeper asked to wait.
        after: Option<Duration>,
    },
}

impl From<String> for NotJoined {
    fn from(why: String) -> Self {
        Self::Refused { why, after: None }
    }
}

impl NotJoined {
    /// What to log, and what the sweeper asked to wait.
    pub(super) fn reason(self) -> (String, Option<Duration>) {
        match self {
            Self::NoChallenges => ("it knows no challenges".to_owned(), None),
            Self::SecretRequired { why } => (why, None),
            Self::Refused { why, after } => (why, after),
        }
    }
}

/// The key, and when the token must be renewed.
#[derive(Debug)]
pub(super) struct Joiner {
    key: Option<NodeKey>,
    /// Why the key that is there cannot be read. Another one in its place would make this node disputed.
    unreadable: Option<String>,
    /// There is none, or the one that there is has expired or was refused.
    needs_token: bool,
    renew_at: Option<Instant>,
}

/// How a request is shown to be this node's.
struct Shown {
    body: Vec<u8>,
    signature: Option<String>,
}

impl Joiner {
    /// With what an earlier agent has kept.
    pub(super) fn new(state: &Arc<StateDir>, node: &NodeId, token: Option<&NodeToken>) -> Self {
        let (key, unreadable) = match state.key(node) {
            Ok(key) => (key, None),
            Err(error) => (None, Some(format!("the node's key in the state directory cannot be read: {error}"))),
        };
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let left_ms = token.and_then(|token| token.expires_unix_ms).map(|end_ms| end_ms.saturating_sub(now_ms));
        let left = left_ms.map(|left_ms| Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)));
        Self {
            key,
            unreadable,
            needs_token: token.is_none() || left.is_some_and(|left| left.is_zero()),
            renew_at: left.map(renewal),
        }
    }

    /// Whether to join at the start, although there is a token: it has expired, or no key is bound to this node yet and one can be.
    pub(super) fn is_due(&self, has_join_secret: bool) -> bool {
        self.needs_token || (self.key.is_none() && has_join_secret)
    }

    /// The sweeper does not take the token.
    pub(super) fn lose_token(&mut self) {
        self.needs_token = true;
    }

    /// Whether the token is about to expire.
    pub(super) fn is_renewal_due(&self) -> bool {
        self.renew_at.is_some_and(|moment| Instant::now() >= moment)
    }

    /// Joins, or renews the token.
    pub(super) async fn join(&mut self, client: &Client, node: &Node, state: &StateDir) -> Result<Joined, NotJoined> {
        self.renew_at = self.renew_at.map(|_| Instant::now() + PAUSE);
        if let Some(why) = &self.unreadable {
            return Err(
                format!("{why}; bring it back, or remove it and run `sweeper nodes revoke {}`", node.node_id).into()
            );
        }
        let challenge = match self.challenge(client, node).await? {
            Some(challenge) => challenge,
            None if !self.needs_token => return Err(NotJoined::NoChallenges),
            // A sweeper from before there were keys.
            None => return self.exchange(client, node, state, &request(client, node, None, None)?, true).await,
        };
        let is_new = self.key.is_none();
        if is_new {
            self.key = make_key(state, &node.node_id);
        }
        let purpose = Purpose { node: &node.node_id, audience: client.base(), challenge: &challenge.challenge };
        let evidence = evidence::gather(&challenge.evidence, &node.metadata, purpose).await;
        let shown = request(client, node, self.key.as_ref().map(|key| (key, &challenge)), evidence)?;
        if is_new {
            return self.exchange(client, node, state, &shown, true).await;
        }
        match self.exchange(client, node, state, &shown, false).await {
            // That key is not bound here: this node was revoked, or the sweeper has lost its database.
            Err(NotJoined::SecretRequired { .. }) if node.join_token.is_some() => {
                self.exchange(client, node, state, &shown, true).await
            }
            outcome => outcome,
        }
    }

    /// `None` from a sweeper that knows no challenges.
    async fn challenge(&self, client: &Client, node: &Node) -> Result<Option<Challenge>, NotJoined> {
        let received = client.challenge(&ChallengeRequest { node_id: node.node_id.clone() }).await?;
        if answer::is_refused_for(&received, "not_found") {
            return Ok(None);
        }
        if !(200..300).contains(&received.status) {
            let why = format!("it gives no challenge for a join: {}", answer::explain(&received));
            return Err(NotJoined::Refused { why, after: received.retry_after });
        }
        let challenge = serde_json::from_slice(&received.body);
        Ok(Some(challenge.map_err(|error| format!("its challenge makes no sense ({error})"))?))
    }

    async fn exchange(
        &mut self,
        client: &Client,
        node: &Node,
        state: &StateDir,
        shown: &Shown,
        with_secret: bool,
    ) -> Result<Joined, NotJoined> {
        let secret = if with_secret { Some(join_secret(node).await?) } else { None };
        let received = client.join(shown.body.clone(), shown.signature.as_deref(), secret.as_ref()).await?;
        if !(200..300).contains(&received.status) {
            let why = format!("it does not let this node join: {}", answer::explain(&received));
            if answer::is_refused_for(&received, SECRET_REQUIRED) {
                return Err(NotJoined::SecretRequired { why });
            }
            return Err(NotJoined::Refused { why, after: received.retry_after });
        }
        let response: JoinResponse = serde_json::from_slice(&received.body)
            .map_err(|error| format!("its answer to the join makes no sense ({error})"))?;
        let lifetime = response.expires_in_s.map(Duration::from_secs);
        let expires_unix_ms = response
            .expires_in_s
            .and_then(|seconds| i64::try_from(seconds).ok())
            .map(|seconds| jiff::Timestamp::now().as_millisecond().saturating_add(seconds.saturating_mul(1_000)));
        let token = NodeToken { secret: SecretString::from(response.node_token), expires_unix_ms };
        if let Err(error) = state.keep_token(&node.node_id, &token) {
            tracing::warn!(%error, "the node token is not kept; this node will join anew after a restart");
        }
        (self.needs_token, self.renew_at) = (false, lifetime.map(renewal));
        Ok(Joined { token: token.secret, last_sequence: response.last_sequence })
    }
}

/// A key that is kept. One that cannot be is none: bound to the node, it would lock the node out after the next restart.
fn make_key(state: &StateDir, node: &NodeId) -> Option<NodeKey> {
    let made = NodeKey::generate().map_err(std::io::Error::other);
    let kept = made.and_then(|key| state.keep_key(node, &key).map(|()| key));
    kept.inspect_err(|error| {
        tracing::warn!(%error, "no key can be kept in the state directory: this node joins without one and is not attested");
    })
    .ok()
}

fn request(
    client: &Client,
    node: &Node,
    key: Option<(&NodeKey, &Challenge)>,
    evidence: Option<Evidence>,
) -> Result<Shown, NotJoined> {
    let request = JoinRequest {
        node_id: node.node_id.clone(),
        boot_id: node.boot_id,
        hostname: node.hostname.clone(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        proof: key.map(|(key, challenge)| Proof {
            public_key: key.public(),
            challenge: challenge.challenge.clone(),
            audience: client.base().to_owned(),
            evidence,
        }),
    };
    let body = serde_json::to_vec(&request).map_err(|error| format!("a join cannot be packed: {error}"))?;
    let signature = key.map(|(key, _)| key.sign_join(&body));
    Ok(Shown { body, signature })
}

async fn join_secret(node: &Node) -> Result<SecretString, NotJoined> {
    match &node.join_token {
        Some(JoinToken::Text(token)) => Ok(token.clone()),
        Some(JoinToken::File(path)) => match tokio::fs::read_to_string(path).await {
            Ok(text) => Ok(SecretString::from(text.trim())),
            Err(error) => Err(format!("join_token_file {}: {error}", path.display()).into()),
        },
        None => Err("it must join, and no join token is configured".to_owned().into()),
    }
}

/// Somewhere between half and three quarters of what is left.
fn renewal(left: Duration) -> Instant {
    Instant::now() + left.mul_f64(rand::rng().random_range(0.5..0.75))
}
