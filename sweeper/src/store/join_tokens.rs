//! Join tokens, which admit one node once, and the end of all that expires.

use super::{
    Doing as _, Refused, Store, StoreError, TokenHash,
    audit::{self, Doer, NewEntry},
    database_now,
    entities::{join_token, node_token, used_challenge},
    identity::after,
    to_unix_ms,
};
use crate::audit::Deed;
use heartbeat::{NodeId, api::JoinRequest};
use jiff::{SignedDuration, Timestamp};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, DatabaseTransaction, EntityTrait as _, QueryFilter as _, sea_query::Expr,
};
use std::{collections::BTreeMap, time::Duration};

/// How long it is kept which node used a join token, after the token's end.
const JOIN_TOKENS_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

impl Store {
    /// Keeps a join token that admits one node, this one if it is named, once until it expires. Returns its end.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn create_join_token(
        &self,
        token: &TokenHash,
        node: Option<&NodeId>,
        lifetime: Duration,
        by: &Doer,
    ) -> Result<Timestamp, StoreError> {
        let transaction = self.begin_write().await?;
        let now = database_now(&transaction).await?;
        let end = after(now, lifetime);
        let row = join_token::ActiveModel {
            token_sha256: Set(token.as_str().to_owned()),
            node_id: Set(node.map(ToString::to_string)),
            created_unix_ms: Set(to_unix_ms(now)),
            expires_unix_ms: Set(to_unix_ms(end)),
            used_by: Set(None),
            used_unix_ms: Set(None),
        };
        join_token::Entity::insert(row).exec_without_returning(&transaction).await.doing("write a join token")?;
        let on = node.map_or_else(|| "any machine".to_owned(), ToString::to_string);
        let detail = BTreeMap::from([("expires_at".to_owned(), end.to_string())]);
        audit::append(&transaction, NewEntry { by, did: Deed::JoinTokenMade, on: &on, detail }).await?;
        transaction.commit().await.doing("commit a join token")?;
        Ok(end)
    }

    /// Whether this was ever a join token.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn is_join_token(&self, token: &TokenHash) -> Result<bool, StoreError> {
        let row = join_token::Entity::find_by_id(token.as_str()).one(&self.connection).await;
        Ok(row.doing("look up a join token")?.is_some())
    }

    /// Deletes tokens and used challenges whose time is over, and join tokens long after it. Says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_expired_tokens(&self) -> Result<u64, StoreError> {
        let now = self.now().await?;
        let tokens = node_token::Entity::delete_many()
            .filter(node_token::Column::ExpiresUnixMs.lt(to_unix_ms(now)))
            .exec(&self.connection)
            .await
            .doing("delete expired tokens")?;
        let challenges = used_challenge::Entity::delete_many()
            .filter(used_challenge::Column::ExpiresUnixMs.lt(to_unix_ms(now)))
            .exec(&self.connection)
            .await
            .doing("delete expired challenges")?;
        let long_ago = now.checked_sub(JOIN_TOKENS_KEPT).unwrap_or(Timestamp::MIN);
        let joins = join_token::Entity::delete_many()
            .filter(join_token::Column::ExpiresUnixMs.lt(to_unix_ms(long_ago)))
            .exec(&self.connection)
            .await
            .doing("delete expired join tokens")?;
        Ok(tokens.rows_affected + challenges.rows_affected + joins.rows_affected)
    }
}

/// Whether a join token admits this node now.
pub(super) async fn look_up(
    transaction: &DatabaseTransaction,
    token: &TokenHash,
    request: &JoinRequest,
    now: Timestamp,
) -> Result<Result<(), Refused>, StoreError> {
    let row = join_token::Entity::find_by_id(token.as_str()).one(transaction).await.doing("look up a join token")?;
    let Some(row) = row else { return Ok(Err(Refused::TokenUnknown)) };
    let is_anothers = row.node_id.is_some_and(|node| node != request.node_id.to_string());
    Ok(match row.used_by {
        _ if is_anothers => Err(Refused::TokenOfAnother),
        Some(_) => Err(Refused::TokenUsed),
        None if row.expires_unix_ms <= to_unix_ms(now) => Err(Refused::TokenExpired),
        None => Ok(()),
    })
}

/// Whether this join is the one that the token admits.
pub(super) async fn spend(
    transaction: &DatabaseTransaction,
    token: &TokenHash,
    request: &JoinRequest,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let spent = join_token::Entity::update_many()
        .col_expr(join_token::Column::UsedBy, Expr::value(request.node_id.to_string()))
        .col_expr(join_token::Column::UsedUnixMs, Expr::value(to_unix_ms(now)))
        .filter(join_token::Column::TokenSha256.eq(token.as_str()))
        .filter(join_token::Column::UsedBy.is_null())
        .exec(transaction)
        .await
        .doing("use a join token")?;
    Ok(spent.rows_affected == 1)
}
