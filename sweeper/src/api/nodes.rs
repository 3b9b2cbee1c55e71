//! `POST /v1/nodes/challenge` and `POST /v1/nodes/join`: a join secret, or the key that it once bound, is exchanged for a token of one node.
//!
//! Whoever holds a join secret can make a node known that never joined, and no other: a node that has joined is bound to its key. Who claims
//! it without that key is refused, the node is *disputed*, and both stand in the log. Nodes without a key, as old agents are, are joined
//! again by whoever holds the fleet token; the earlier token is then void.

use super::{
    AppState, auth, body, counters, evidence,
    problem::{Reason, Refusal},
};
use crate::{
    identity::{KeyError, PublicKey, challenge::ChallengeError, challenge::LIFETIME},
    store::{Join, JoinSecret, Refused, TokenHash},
};
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use heartbeat::{
    NodeId,
    api::{Challenge, ChallengeRequest, JoinRequest, JoinResponse, SIGNATURE_HEADER},
    attestation::Proof,
    envelope::MAX_NAME_BYTES,
};
use jiff::Timestamp;

/// Largest accepted join request, in bytes; a usual one has 600, and 4,000 with evidence.
const MAX_JOIN_BYTES: usize = 16 * 1024;
/// Largest accepted request for a challenge, in bytes.
const MAX_CHALLENGE_BYTES: usize = 1024;

async fn json<T: serde::de::DeserializeOwned>(
    state: &AppState,
    headers: &HeaderMap,
    content: Body,
    limit: usize,
) -> Result<(T, Vec<u8>), Refusal> {
    body::require_type(headers, "application/json", "identity")?;
    let _slot = state.body_slot()?;
    let bytes = body::read(headers, content, limit).await?;
    let value = serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::new(Reason::Malformed, format!("The body is not of this request: {error}.")))?;
    Ok((value, bytes))
}

pub(super) async fn challenge(
    State(state): State<AppState>,
    headers: HeaderMap,
    content: Body,
) -> Result<Json<Challenge>, Refusal> {
    let (request, _): (ChallengeRequest, _) = json(&state, &headers, content, MAX_CHALLENGE_BYTES).await?;
    let given = state.challenges().await?.give(&request.node_id, state.store().now().await?);
    let challenge = given.map_err(|error| {
        tracing::error!(%error, "the system gave no random bytes");
        Refusal::new(Reason::Internal, "No challenge could be made; try again later.")
    })?;
    let evidence = evidence::asked_of(&state, &request.node_id);
    Ok(Json(Challenge { challenge, expires_in_s: LIFETIME.as_secs().unsigned_abs(), evidence }))
}

pub(super) async fn join(
    State(state): State<AppState>,
    headers: HeaderMap,
    content: Body,
) -> Result<Json<JoinResponse>, Refusal> {
    let secret = auth::join_secret(&state, &headers).await?;
    let (request, body): (JoinRequest, _) = json(&state, &headers, content, MAX_JOIN_BYTES).await?;
    let joined = admit(&state, &headers, &secret, &request, &body).await;
    joined.map(Json).map_err(|refusal| refusal.of_node(&request.node_id))
}

async fn admit(
    state: &AppState,
    headers: &HeaderMap,
    secret: &JoinSecret,
    request: &JoinRequest,
    body: &[u8],
) -> Result<JoinResponse, Refusal> {
    for (field, text) in [("hostname", &request.hostname), ("agent_version", &request.agent_version)] {
        if text.is_empty() || text.len() > MAX_NAME_BYTES || text.contains(heartbeat::text::is_hidden) {
            let detail =
                format!("{field}: 1 to {MAX_NAME_BYTES} bytes without control or invisible characters are allowed.");
            return Err(Refusal::new(Reason::Invalid, detail));
        }
    }
    let proved = match &request.proof {
        Some(proof) => Some(prove(state, headers, &request.node_id, proof, body).await?),
        None => None,
    };
    let evidence = match &proved {
        Some(proved) => evidence::verified(state, secret, request, &proved.key).await?,
        None => None,
    };
    let node_token = auth::node_token()?;
    let lifetime = state.identity().node_token_lifetime;
    let join = Join {
        request,
        key: proved.as_ref().map(|proved| proved.key),
        secret,
        evidence,
        challenge: proved.as_ref().map(|proved| (&proved.challenge, proved.expires)),
        token: &TokenHash::of(&node_token),
        lifetime,
        now: Timestamp::now(),
    };
    let joined = state.store().admit(&join).await?.map_err(|refused| refusal(refused, &join))?;
    counters::joined();
    tracing::info!(
        node = %request.node_id,
        boot = %request.boot_id,
        hostname = request.hostname,
        agent_version = request.agent_version,
        last_sequence = joined.last_sequence,
        attestation = joined.attestation.as_str(),
        key = join.key.map(|key| key.fingerprint()),
        joined_before = joined.rejoined,
        "node joined"
    );
    let expires_in_s = joined.has_key.then_some(lifetime.as_secs());
    Ok(JoinResponse { node_token, expires_in_s, last_sequence: joined.last_sequence })
}

/// What a join has proved.
struct Proved {
    key: PublicKey,
    challenge: TokenHash,
    expires: Timestamp,
}

/// Checks a proof, the cheapest first: whoever has no challenge of ours costs one HMAC.
async fn prove(
    state: &AppState,
    headers: &HeaderMap,
    node: &NodeId,
    proof: &Proof,
    body: &[u8],
) -> Result<Proved, Refusal> {
    let expires = state.challenges().await?.check(&proof.challenge, node, state.store().now().await?);
    let expires = expires.map_err(|error| match error {
        ChallengeError::NotOurs => Refusal::new(Reason::ChallengeUnknown, format!("{error}; ask for a new one.")),
        ChallengeError::Expired => Refusal::new(Reason::ChallengeExpired, format!("{error}; ask for a new one.")),
    })?;
    if let Some(audience) = &state.identity().audience
        && proof.audience.trim_end_matches('/') != audience.trim_end_matches('/')
    {
        let shown = heartbeat::text::visible(&proof.audience).chars().take(200).collect::<String>();
        let detail = format!(
            "The agent was told `sweeper_url = \"{shown}\"`, and this sweeper `identity.audience = \"{audience}\"`; make them equal."
        );
        return Err(Refusal::new(Reason::WrongAudience, detail));
    }
    let signature = headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = proof.public_key.parse::<PublicKey>().and_then(|key| key.verify(body, signature).map(|()| key));
    let key = key.map_err(|error| match error {
        KeyError::NotAKey => Refusal::new(Reason::Malformed, format!("{error}.")),
        KeyError::Signature => {
            Refusal::new(Reason::SignatureInvalid, format!("{error}; the header {SIGNATURE_HEADER} must hold it."))
        }
    })?;
    Ok(Proved { key, challenge: TokenHash::of(&proof.challenge), expires })
}

fn refusal(refused: Refused, join: &Join<'_>) -> Refusal {
    let (reason, detail) = match refused {
        Refused::SecretRequired => (
            Reason::JoinSecretRequired,
            "No key is bound to this node, or another one: join with the fleet token or a join token.",
        ),
        Refused::TokenUnknown => {
            (Reason::Unauthenticated, "This join token is not known; `sweeper nodes token` makes one.")
        }
        Refused::TokenExpired => (Reason::JoinTokenExpired, "`sweeper nodes token` makes another one."),
        Refused::TokenUsed => {
            (Reason::JoinTokenUsed, "It admits one node once; `sweeper nodes token` makes another one.")
        }
        Refused::TokenOfAnother => {
            (Reason::JoinTokenOfAnotherNode, "It was made with `--node` for another node than this one.")
        }
        Refused::KeyRequired => {
            (Reason::KeyRequired, "This agent has no key: bring it up to date, or let it write its state directory.")
        }
        Refused::Replayed => (Reason::ChallengeReplayed, "Each challenge is answered once; ask for a new one."),
        Refused::Disputed => {
            tracing::warn!(
                node = %join.request.node_id,
                boot = %join.request.boot_id,
                hostname = join.request.hostname,
                claimant_key = join.key.map(|key| key.fingerprint()),
                "node disputed: a join secret was shown for it without its key; it is unknown until `sweeper nodes settle` or `revoke`"
            );
            (
                Reason::KeyMismatch,
                "This node is bound to another key and is disputed now. If this machine was made anew in its place, run `sweeper nodes \
                 revoke NODE` and let it join again.",
            )
        }
    };
    Refusal::new(reason, detail)
}
