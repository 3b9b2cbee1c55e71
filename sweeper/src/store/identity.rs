//! Who is admitted as which node, as rows: keys, tokens that expire, join tokens, disputes.
//!
//! A join is one transaction under the lock of the node's row, so that of two claimants who come at once one is bound and the other
//! finds it bound. What is decided is decided by [`decide`]; all ends of time are by the database's clock.

use super::{
    Doing as _, Store, StoreError, TokenHash,
    audit::{self, Doer, NewEntry},
    corrupt, database_now,
    entities::{boot, node, node_token, used_challenge},
    join_tokens, to_unix_ms,
};
use crate::{
    audit::Deed,
    identity::{Attestation, Decision, Held, PublicKey, Secret, decide},
};
use heartbeat::{NodeId, api::JoinRequest};
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ActiveModelTrait as _,
    ActiveValue::{Set, Unchanged},
    ColumnTrait as _, DatabaseTransaction, EntityTrait as _, IntoActiveModel as _, QueryFilter as _, QuerySelect as _,
    TryInsertResult,
    sea_query::Expr,
};
use std::{collections::BTreeMap, time::Duration};

/// The join secret that was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinSecret {
    /// None.
    None,
    /// The fleet token, already compared.
    Fleet,
    /// What may be a join token.
    Once(TokenHash),
}

/// All that a join shows, its signature and evidence already verified.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    /// What was sent.
    pub request: &'a JoinRequest,
    /// The key that signed it.
    pub key: Option<PublicKey>,
    /// The join secret.
    pub secret: &'a JoinSecret,
    /// What evidence proved.
    pub evidence: Option<Attestation>,
    /// The challenge that it answers and when that expires; `None` for a join without a key.
    pub challenge: Option<(&'a TokenHash, Timestamp)>,
    /// The node's new token.
    pub token: &'a TokenHash,
    /// How long that is good for, if the node has a key.
    pub lifetime: Duration,
    /// The time by the sweeper's clock.
    pub now: Timestamp,
}

/// What joining came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Highest sequence of this boot that is stored; 0 if none.
    pub last_sequence: u64,
    /// The node had joined before.
    pub rejoined: bool,
    /// How it is attested.
    pub attestation: Attestation,
    /// Whether a key is bound to it, so that its token expires.
    pub has_key: bool,
}

/// Why a join is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another key is bound to the node, or one where none was shown. The node is disputed now.
    Disputed,
    /// No key is bound to the node, or another one, and no join secret was shown.
    SecretRequired,
    /// A join token admits only a node that binds a key.
    KeyRequired,
    /// The challenge was answered before.
    Replayed,
    /// There is no such join token.
    TokenUnknown,
    /// The join token's time is over.
    TokenExpired,
    /// The join token has admitted a node.
    TokenUsed,
    /// The join token is for another node.
    TokenOfAnother,
}

/// The outcome of a join.
pub type Admission = Result<Joined, Refused>;

impl Store {
    /// Admits a node, or refuses it; a refusal leaves no trace but a dispute.
    ///
    /// # Errors
    /// If the database does not answer; nothing has changed then.
    pub async fn admit(&self, join: &Join<'_>) -> Result<Admission, StoreError> {
        let transaction = self.begin_write().await?;
        let admission = admit(&transaction, join).await?;
        match admission {
            Ok(_) | Err(Refused::Disputed) => transaction.commit().await.doing("commit a join")?,
            Err(_) => transaction.rollback().await.doing("roll back a join")?,
        }
        Ok(admission)
    }

    /// Makes a node known as one that joins by the fleet token and has no key, or known again: its earlier token is void from then on.
    ///
    /// # Errors
    /// If the database does not answer, or the node has a key.
    pub async fn join_node(
        &self,
        request: &JoinRequest,
        token: &TokenHash,
        now: Timestamp,
    ) -> Result<Joined, StoreError> {
        let secret = &JoinSecret::Fleet;
        let lifetime = Duration::ZERO;
        let join = Join { request, key: None, secret, evidence: None, challenge: None, token, lifetime, now };
        let refused = |refused| corrupt("a node that joins without a key", format!("{refused:?}"));
        self.admit(&join).await?.map_err(refused)
    }

    /// Frees a node of its key and voids its tokens, so that a machine can join anew in its place; ends a dispute. Returns `false`
    /// if there is no such node.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn revoke_node(&self, id: &NodeId, by: &Doer) -> Result<bool, StoreError> {
        let transaction = self.begin_write().await?;
        let now = database_now(&transaction).await?;
        let Some(row) = lock_node(&transaction, &id.to_string()).await? else { return Ok(false) };
        let mut row = row.into_active_model();
        row.public_key = Set(None);
        row.key_bound_unix_ms = Set(None);
        row.attestation = Set(Attestation::None.as_str().to_owned());
        row.attested_unix_ms = Set(None);
        row.disputed_unix_ms = Set(None);
        row.disputed_because = Set(None);
        row.revoked_unix_ms = Set(Some(to_unix_ms(now)));
        // No token has this hash: it is none.
        row.token_sha256 = Set(format!("revoked {}", uuid::Uuid::new_v4()));
        row.update(&transaction).await.doing("revoke a node")?;
        void_tokens(&transaction, id).await?;
        append(&transaction, by, Deed::NodeRevoked, id).await?;
        transaction.commit().await.doing("commit a revocation")?;
        Ok(true)
    }

    /// Ends a dispute in favour of the key that is bound. Returns `false` if there is no such node, or no dispute.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn settle_node(&self, id: &NodeId, by: &Doer) -> Result<bool, StoreError> {
        let transaction = self.begin_write().await?;
        let settled = node::Entity::update_many()
            .col_expr(node::Column::DisputedUnixMs, Expr::value(Option::<i64>::None))
            .col_expr(node::Column::DisputedBecause, Expr::value(Option::<String>::None))
            .filter(node::Column::NodeId.eq(id.to_string()))
            .filter(node::Column::DisputedUnixMs.is_not_null())
            .exec(&transaction)
            .await
            .doing("settle a dispute")?;
        if settled.rows_affected == 0 {
            return Ok(false);
        }
        append(&transaction, by, Deed::NodeSettled, id).await?;
        transaction.commit().await.doing("commit the end of a dispute")?;
        Ok(true)
    }
}

/// Who is believed to be which machine gives and takes a right: it is written down, and a restored backup that lacks it is noticed.
async fn append(transaction: &DatabaseTransaction, by: &Doer, did: Deed, on: &NodeId) -> Result<(), StoreError> {
    audit::append(transaction, NewEntry { by, did, on: &on.to_string(), detail: BTreeMap::new() }).await
}

pub(super) fn after(now: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length).ok().and_then(|length| now.checked_add(length).ok()).unwrap_or(Timestamp::MAX)
}

async fn lock_node(transaction: &DatabaseTransaction, id: &str) -> Result<Option<node::Model>, StoreError> {
    node::Entity::find_by_id(id).lock_exclusive().one(transaction).await.doing("lock a node")
}

async fn void_tokens(transaction: &DatabaseTransaction, id: &NodeId) -> Result<(), StoreError> {
    let of_node = node_token::Entity::delete_many().filter(node_token::Column::NodeId.eq(id.to_string()));
    of_node.exec(transaction).await.doing("void a node's tokens")?;
    Ok(())
}

async fn admit(transaction: &DatabaseTransaction, join: &Join<'_>) -> Result<Admission, StoreError> {
    let now = database_now(transaction).await?;
    let (row, rejoined) = known(transaction, join).await?;
    let key = join.key.map(|key| key.to_string());
    let known_as: Attestation =
        row.attestation.parse().map_err(|error| corrupt(format!("the attestation of {}", row.node_id), error))?;
    let held = match row.public_key.as_deref() {
        Some(key) => Held::Bound { key, attestation: known_as },
        None => Held::Free,
    };
    let secret = match join.secret {
        JoinSecret::None => Secret::None,
        JoinSecret::Fleet => Secret::FleetToken,
        JoinSecret::Once(token) => match join_tokens::look_up(transaction, token, join.request, now).await? {
            Ok(()) => Secret::JoinToken,
            // The answer to its first use may have been lost: the key that it bound speaks for itself.
            Err(Refused::TokenUsed)
                if matches!(decide(held, key.as_deref(), Secret::None, None), Decision::Renew { .. }) =>
            {
                Secret::None
            }
            Err(refused) => return Ok(Err(refused)),
        },
    };
    let decision = decide(held, key.as_deref(), secret, join.evidence);
    let attestation = match decision {
        Decision::SecretRequired => return Ok(Err(Refused::SecretRequired)),
        Decision::KeyRequired => return Ok(Err(Refused::KeyRequired)),
        Decision::Bind { attestation } | Decision::Renew { attestation } => attestation,
        Decision::Keyless => Attestation::FleetToken,
        Decision::Dispute => known_as,
    };
    if !use_up(transaction, join.challenge).await? {
        return Ok(Err(Refused::Replayed));
    }
    if decision == Decision::Dispute {
        dispute(transaction, row, join.key, now).await?;
        return Ok(Err(Refused::Disputed));
    }
    if let (JoinSecret::Once(token), Secret::JoinToken) = (join.secret, secret)
        && !join_tokens::spend(transaction, token, join.request, now).await?
    {
        return Ok(Err(Refused::TokenUsed));
    }
    let boot = (join.request.node_id.to_string(), join.request.boot_id.to_string());
    let boot = boot::Entity::find_by_id(boot).one(transaction).await.doing("read a boot")?;
    let mut row = row.into_active_model();
    row.hostname = Set(join.request.hostname.clone());
    row.agent_version = Set(join.request.agent_version.clone());
    // Sweepers of the version before know no other token than this one.
    row.token_sha256 = Set(join.token.as_str().to_owned());
    row.attestation = Set(attestation.as_str().to_owned());
    if matches!(decision, Decision::Bind { .. }) {
        row.public_key = Set(key);
        row.key_bound_unix_ms = Set(Some(to_unix_ms(now)));
    }
    if attestation != known_as {
        row.attested_unix_ms = Set(Some(to_unix_ms(now)));
    }
    row.revoked_unix_ms = Set(None);
    row.update(transaction).await.doing("write a node")?;
    if decision != Decision::Keyless {
        let token = node_token::ActiveModel {
            token_sha256: Set(join.token.as_str().to_owned()),
            node_id: Set(join.request.node_id.to_string()),
            expires_unix_ms: Set(to_unix_ms(after(now, join.lifetime))),
        };
        node_token::Entity::insert(token).exec_without_returning(transaction).await.doing("write a node token")?;
    }
    Ok(Ok(Joined {
        last_sequence: boot.map_or(0, |boot| boot.highest_sequence.unsigned_abs()),
        rejoined,
        attestation,
        has_key: decision != Decision::Keyless,
    }))
}

/// The node's row under its lock, and whether it was there before. Of two first joins at once the second waits here for the first.
async fn known(transaction: &DatabaseTransaction, join: &Join<'_>) -> Result<(node::Model, bool), StoreError> {
    let id = join.request.node_id.to_string();
    let fresh = node::ActiveModel {
        node_id: Set(id.clone()),
        hostname: Set(join.request.hostname.clone()),
        agent_version: Set(join.request.agent_version.clone()),
        token_sha256: Set(join.token.as_str().to_owned()),
        joined_at_unix_ms: Set(to_unix_ms(join.now)),
        last_seen_at_unix_ms: Set(None),
        public_key: Set(None),
        key_bound_unix_ms: Set(None),
        attestation: Set(Attestation::None.as_str().to_owned()),
        attested_unix_ms: Set(None),
        disputed_unix_ms: Set(None),
        disputed_because: Set(None),
        revoked_unix_ms: Set(None),
        refused_unix_ms: Set(None),
        refused_because: Set(None),
    };
    let known = match lock_node(transaction, &id).await? {
        Some(row) => return Ok((row, true)),
        None => node::Entity::insert(fresh).on_conflict_do_nothing().exec_without_returning(transaction).await,
    };
    let rejoined = !matches!(known.doing("write a node")?, TryInsertResult::Inserted(1..));
    let row = lock_node(transaction, &id).await?;
    Ok((row.ok_or_else(|| corrupt(format!("node {id}"), "the row that was just written is missing"))?, rejoined))
}

/// Whether the challenge was not answered before.
async fn use_up(
    transaction: &DatabaseTransaction,
    challenge: Option<(&TokenHash, Timestamp)>,
) -> Result<bool, StoreError> {
    let Some((challenge, end)) = challenge else { return Ok(true) };
    let row = used_challenge::ActiveModel {
        challenge_sha256: Set(challenge.as_str().to_owned()),
        expires_unix_ms: Set(to_unix_ms(end)),
    };
    let insert = used_challenge::Entity::insert(row).on_conflict_do_nothing();
    let done = insert.exec_without_returning(transaction).await.doing("note a used challenge")?;
    Ok(matches!(done, TryInsertResult::Inserted(1..)))
}

async fn dispute(
    transaction: &DatabaseTransaction,
    row: node::Model,
    claimant: Option<PublicKey>,
    now: Timestamp,
) -> Result<(), StoreError> {
    if row.disputed_unix_ms.is_some() {
        return Ok(());
    }
    let because = match claimant {
        Some(key) => format!("a join secret was shown with another key ({})", key.fingerprint()),
        None => "a join secret was shown without a key".to_owned(),
    };
    let disputed = node::ActiveModel {
        node_id: Unchanged(row.node_id),
        disputed_unix_ms: Set(Some(to_unix_ms(now))),
        disputed_because: Set(Some(because)),
        ..<node::ActiveModel as Default>::default()
    };
    disputed.update(transaction).await.doing("note a dispute")?;
    Ok(())
}
