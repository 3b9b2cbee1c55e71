//! Where on its channel a message stands: decided once, when it is written, and changed only if that place does not take it.
//!
//! What answers another message goes where that one went, whatever was configured since. What Slack does not let be posted in a channel is diverted to the one for
//! all, once, and so is what answers it.

use super::{Claimed, PENDING, SENT, row};
use crate::{
    reconcile::EventId,
    store::{Doing as _, Store, StoreError},
};
use sea_orm::{ColumnTrait as _, EntityTrait as _, ExprTrait as _, QueryFilter as _, sea_query::Expr};

/// Where a message goes, and why there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Destination {
    /// A channel of Slack's; none is the one for all, whichever is configured when it is sent.
    pub(crate) channel: Option<String>,
    /// In one sentence.
    pub(crate) because: Option<String>,
    /// Where it should have gone.
    pub(super) diverted_from: Option<String>,
}

impl Destination {
    /// To this channel, for that reason.
    pub(crate) fn new(channel: Option<String>, because: String) -> Self {
        Self { channel, because: Some(because), diverted_from: None }
    }

    /// What has the same word is told together within one destination alone, by a sweeper of the version before, too.
    pub(super) fn within(&self, audience: String) -> String {
        match &self.channel {
            Some(channel) => format!("{audience}|in|{channel}"),
            None => audience,
        }
    }
}

/// The message that another one is to answer.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    /// Of which event.
    pub(crate) event: EventId,
    /// Whether it was sent; false while it waits for that, and none once it was discarded.
    pub(crate) is_sent: Option<bool>,
    destination: Destination,
}

impl Before {
    pub(super) fn of(row: row::Model) -> Self {
        let because = format!("it answers {}, which is there", row.event_id);
        let destination =
            Destination { channel: row.destination, because: Some(because), diverted_from: row.diverted_from };
        let is_sent = match row.state.as_str() {
            SENT => Some(true),
            PENDING => Some(false),
            _ => None,
        };
        Self { event: EventId(row.event_id), is_sent, destination }
    }

    /// Whether it stands in this channel.
    pub(crate) fn is_in(&self, channel: Option<&str>) -> bool {
        self.channel() == channel
    }

    /// The channel that it stands in; none is the one for all.
    pub(crate) fn channel(&self) -> Option<&str> {
        self.destination.channel.as_deref()
    }

    /// Where its answers go.
    pub(crate) fn destination(&self) -> Destination {
        self.destination.clone()
    }
}

impl Claimed {
    /// Whether it may go to the channel for all where its own takes no message of ours.
    #[must_use]
    pub fn may_be_diverted(&self) -> bool {
        self.diverted_from.is_none() && self.destination.is_some()
    }
}

impl Store {
    /// Has a claim, which its channel does not take, sent to the one for all, and so what waits to answer it. It begins a thread there.
    ///
    /// # Errors
    /// If the database does not answer; it is then tried where it was meant for when the claim ends.
    pub async fn divert(&self, claimed: &Claimed, why: &str) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let none = || Expr::value(Option::<String>::None);
        let diverted = || {
            row::Entity::update_many()
                .col_expr(row::Column::Destination, none())
                .col_expr(row::Column::DivertedFrom, Expr::value(claimed.destination.as_deref()))
                .col_expr(row::Column::RoutedBecause, Expr::value(why))
                .filter(row::Column::Channel.eq(&claimed.channel))
        };
        diverted()
            .col_expr(row::Column::Answers, none())
            .col_expr(row::Column::ClaimedUntilUnixMs, Expr::value(0_i64))
            .col_expr(row::Column::Attempts, Expr::col(row::Column::Attempts).add(1_i32))
            .filter(row::Column::EventId.is_in(claimed.events()))
            .exec(&transaction)
            .await
            .doing("divert a message")?;
        diverted()
            .filter(row::Column::State.eq(PENDING))
            .filter(row::Column::Answers.is_in(claimed.events()))
            .exec(&transaction)
            .await
            .doing("divert what answers a message")?;
        transaction.commit().await.doing("commit where a message goes")
    }
}
