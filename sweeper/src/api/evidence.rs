//! Evidence of a join: which kinds are asked for, and what it must agree with beside its own signature.

use super::{
    AppState,
    problem::{Reason, Refusal},
};
use crate::{
    identity::{
        Attestation, PublicKey,
        evidence::{EvidenceError, Verified},
    },
    store::JoinSecret,
};
use heartbeat::{NodeId, api::JoinRequest};
use jiff::Timestamp;
use model::Provider;

/// Kinds that the node may show: by its cloud and region alone. Anybody may ask, so whether its account is swept makes no difference: a list of
/// which accounts are would tell strangers what the sweeper watches.
pub(super) fn asked_of(state: &AppState, node: &NodeId) -> Vec<String> {
    state.verifier().asks(node).into_iter().map(|kind| kind.as_str().to_owned()).collect()
}

/// How evidence attests the node. `None` if none was shown, if it changes nothing (a cloud has attested the holder of this key before),
/// or if the join is refused whatever it says: evidence of those who show neither a join secret nor the node's key is not read. Nor is that of a
/// machine whose account is not swept: it joins as not attested, whatever a cloud says of it.
pub(super) async fn verified(
    state: &AppState,
    secret: &JoinSecret,
    request: &JoinRequest,
    key: &PublicKey,
) -> Result<Option<Attestation>, Refusal> {
    let Some(evidence) = request.proof.as_ref().and_then(|proof| proof.evidence.as_ref()) else { return Ok(None) };
    let known = state.store().node(&request.node_id).await?;
    let bound = known.as_ref().and_then(|node| node.binding.as_ref());
    let has_key = bound.is_some_and(|bound| bound.public_key == key.to_string());
    let is_attested = known.as_ref().is_some_and(|node| node.attestation.is_by_cloud());
    if (has_key && is_attested) || (!has_key && *secret == JoinSecret::None) {
        return Ok(None);
    }
    let is_in_an_account = !matches!(request.node_id, NodeId::Host { .. });
    if is_in_an_account && !is_known_account(state, &request.node_id).await? {
        tracing::info!(
            node = %request.node_id,
            "the node's account is not swept, so it is not attested by its evidence; `identity.accounts` adds one"
        );
        return Ok(None);
    }
    let challenge = request.proof.as_ref().map_or("", |proof| proof.challenge.as_str());
    let verified = state.verifier().verify(evidence, &request.node_id, challenge, Timestamp::now()).await;
    let Verified { attestation, role } = verified.map_err(|error| refusal(&error))?;
    let listed = state.store().last_version(&request.node_id.to_string()).await?;
    if listed.as_ref().is_some_and(|last| last.until.is_some() || last.record["state"] == "terminated") {
        let detail =
            "The inventory has seen this machine's end; evidence of it never expires, so it proves nothing now.";
        return Err(Refusal::new(Reason::InstanceGone, detail));
    }
    if let Some(role) = role {
        let profile = listed.as_ref().and_then(|last| last.record["instance_profile"].as_str());
        if profile != Some(role.as_str()) {
            let profile = profile.unwrap_or("none");
            let detail = format!(
                "The request is signed by the role {role}, and the inventory shows the instance profile {profile} on this machine."
            );
            return Err(Refusal::new(Reason::ForeignRole, heartbeat::text::visible(&detail)));
        }
    }
    Ok(Some(attestation))
}

async fn is_known_account(state: &AppState, node: &NodeId) -> Result<bool, Refusal> {
    let (provider, account) = match node {
        NodeId::Aws { account, .. } => (Provider::Aws, account),
        NodeId::Gcp { project, .. } => (Provider::Gcp, project),
        NodeId::Host { .. } => return Ok(false),
    };
    Ok(state.identity().accounts.contains(account) || state.store().is_swept(provider, account).await?)
}

fn refusal(error: &EvidenceError) -> Refusal {
    let reason = match error {
        EvidenceError::NotAccepted => Reason::EvidenceNotAccepted,
        EvidenceError::Malformed(_) => Reason::EvidenceMalformed,
        EvidenceError::Forged => Reason::EvidenceForged,
        EvidenceError::UnknownCertificate { .. } => Reason::UnknownCertificate,
        EvidenceError::UnknownKey => Reason::UnknownSigningKey,
        EvidenceError::ForeignInstance(_) => Reason::ForeignInstance,
        EvidenceError::WrongAudience => Reason::WrongAudience,
        EvidenceError::Expired => Reason::EvidenceExpired,
        EvidenceError::Unavailable(_) => Reason::EvidenceUnverified,
    };
    Refusal::new(reason, format!("{}.", heartbeat::text::visible(&error.to_string())))
}
