//! Nodes that joined. Each holds a token that only it knows; the database knows the token's SHA-256.

use super::{
    Doing as _, Store, StoreError, corrupt,
    entities::{boot, node},
    from_unix_ms, to_unix_ms,
};
use heartbeat::{NodeId, api::JoinRequest};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, QueryTrait as _,
    sea_query::OnConflict,
};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a token, as 64 hexadecimal digits: all that is kept of it. A token has 256 random bits, so it needs neither salt nor a slow hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHash(String);

impl TokenHash {
    /// The hash of a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(hex::encode(Sha256::digest(token.as_bytes())))
    }

    /// 64 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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
}

/// What joining came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Highest sequence of this boot that is stored; 0 if none.
    pub last_sequence: u64,
    /// The node had joined before; its earlier token is void now.
    pub rejoined: bool,
}

impl Store {
    /// Makes a node known, or known again: its earlier token is void from then on.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn join_node(
        &self,
        request: &JoinRequest,
        token: &TokenHash,
        now: Timestamp,
    ) -> Result<Joined, StoreError> {
        let id = request.node_id.to_string();
        let transaction = self.begin_write().await?;
        let known = node::Entity::find_by_id(id.clone()).one(&transaction).await.doing("read a node")?;
        let row = node::ActiveModel {
            node_id: Set(id.clone()),
            hostname: Set(request.hostname.clone()),
            agent_version: Set(request.agent_version.clone()),
            token_sha256: Set(token.as_str().to_owned()),
            joined_at_unix_ms: Set(to_unix_ms(now)),
            last_seen_at_unix_ms: Set(None),
        };
        let renew = OnConflict::column(node::Column::NodeId)
            .update_columns([node::Column::Hostname, node::Column::AgentVersion, node::Column::TokenSha256])
            .to_owned();
        node::Entity::insert(row)
            .on_conflict(renew)
            .exec_without_returning(&transaction)
            .await
            .doing("write a node")?;
        let boot =
            boot::Entity::find_by_id((id, request.boot_id.to_string())).one(&transaction).await.doing("read a boot")?;
        transaction.commit().await.doing("commit a joining node")?;
        let last_sequence = boot.map_or(0, |boot| boot.highest_sequence.unsigned_abs());
        Ok(Joined { last_sequence, rejoined: known.is_some() })
    }

    /// The node that holds a token.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn node_by_token(&self, token: &TokenHash) -> Result<Option<Node>, StoreError> {
        let row = node::Entity::find()
            .filter(node::Column::TokenSha256.eq(token.as_str()))
            .one(&self.connection)
            .await
            .doing("look up a token")?;
        row.map(Node::try_from).transpose()
    }

    /// Every node that ever joined, in the order of their ids.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        self.nodes_like(None).await
    }

    /// The nodes whose ids begin like this, or all.
    pub(crate) async fn nodes_like(&self, prefix: Option<&str>) -> Result<Vec<Node>, StoreError> {
        let rows = node::Entity::find()
            .apply_if(prefix, |nodes, prefix| nodes.filter(node::Column::NodeId.starts_with(prefix)))
            .order_by_asc(node::Column::NodeId)
            .all(&self.connection)
            .await
            .doing("read the nodes")?;
        rows.into_iter().map(Node::try_from).collect()
    }
}

impl TryFrom<node::Model> for Node {
    type Error = StoreError;

    fn try_from(row: node::Model) -> Result<Self, StoreError> {
        Ok(Self {
            node_id: row.node_id.parse().map_err(|error| corrupt("a node", error))?,
            hostname: row.hostname,
            agent_version: row.agent_version,
            joined_at: from_unix_ms(row.joined_at_unix_ms)?,
            last_seen_at: row.last_seen_at_unix_ms.map(from_unix_ms).transpose()?,
        })
    }
}
