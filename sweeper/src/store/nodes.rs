//! Nodes that joined. Each holds a token that only it knows; the database knows the token's SHA-256. How they join: `identity`.

use super::{
    Doing as _, Store, StoreError, clock, corrupt,
    entities::{node, node_token},
    from_unix_ms, to_unix_ms,
};
use crate::identity::{Binding, Node};
use heartbeat::NodeId;
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, PaginatorTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _, sea_query::Expr, sea_query::ExprTrait as _,
};
use sha2::{Digest as _, Sha256};

/// A node that is refused again and again is noted once in this time.
const NOTED_AGAIN_AFTER_MS: i64 = 10_000;

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

impl Store {
    /// The node that holds a token: one that has not expired by the database's clock, of a node with a key, or the one of a node
    /// without a key, which does not expire.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn node_by_token(&self, token: &TokenHash) -> Result<Option<Node>, StoreError> {
        let now = Expr::cust(clock(self.connection.get_database_backend()));
        let holder = node_token::Entity::find()
            .select_only()
            .column(node_token::Column::NodeId)
            .filter(node_token::Column::TokenSha256.eq(token.as_str()))
            .filter(Expr::col(node_token::Column::ExpiresUnixMs).gt(now))
            .into_query();
        let with_key = node::Entity::find()
            .filter(node::Column::NodeId.in_subquery(holder))
            .filter(node::Column::PublicKey.is_not_null())
            .one(&self.connection)
            .await
            .doing("look up a token")?;
        let row = match with_key {
            Some(row) => Some(row),
            None => node::Entity::find()
                .filter(node::Column::TokenSha256.eq(token.as_str()))
                .filter(node::Column::PublicKey.is_null())
                .one(&self.connection)
                .await
                .doing("look up a token that does not expire")?,
        };
        row.map(Node::try_from).transpose()
    }

    /// The node of this id.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn node(&self, id: &NodeId) -> Result<Option<Node>, StoreError> {
        by_id(&self.connection, id).await
    }

    /// Notes that heartbeats of a node were refused, once in ten seconds.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn note_refused_heartbeats(&self, id: &NodeId, because: &str, now: Timestamp) -> Result<(), StoreError> {
        let before = to_unix_ms(now).saturating_sub(NOTED_AGAIN_AFTER_MS);
        let is_news =
            Condition::any().add(node::Column::RefusedUnixMs.is_null()).add(node::Column::RefusedUnixMs.lt(before));
        node::Entity::update_many()
            .col_expr(node::Column::RefusedUnixMs, Expr::value(to_unix_ms(now)))
            .col_expr(node::Column::RefusedBecause, Expr::value(because))
            .filter(node::Column::NodeId.eq(id.to_string()))
            .filter(is_news)
            .exec(&self.connection)
            .await
            .doing("note that heartbeats were refused")?;
        Ok(())
    }

    /// How many nodes are disputed.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn disputed_nodes(&self) -> Result<u64, StoreError> {
        let disputed = node::Entity::find().filter(node::Column::DisputedUnixMs.is_not_null());
        disputed.count(&self.connection).await.doing("count disputed nodes")
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

/// See [`Store::node`].
pub(super) async fn by_id(connection: &impl ConnectionTrait, id: &NodeId) -> Result<Option<Node>, StoreError> {
    let row = node::Entity::find_by_id(id.to_string()).one(connection).await.doing("read a node")?;
    row.map(Node::try_from).transpose()
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
            attestation: row.attestation.parse().map_err(|error| corrupt("the attestation of a node", error))?,
            binding: match (row.public_key, row.key_bound_unix_ms) {
                (Some(public_key), Some(since)) => Some(Binding { public_key, since: from_unix_ms(since)? }),
                _ => None,
            },
            disputed: match (row.disputed_unix_ms, row.disputed_because) {
                (Some(since), because) => Some((from_unix_ms(since)?, because.unwrap_or_default())),
                (None, _) => None,
            },
            revoked_at: row.revoked_unix_ms.map(from_unix_ms).transpose()?,
            refused: match row.refused_unix_ms {
                Some(at) if row.last_seen_at_unix_ms < Some(at) => {
                    Some((from_unix_ms(at)?, row.refused_because.unwrap_or_default()))
                }
                _ => None,
            },
        })
    }
}
