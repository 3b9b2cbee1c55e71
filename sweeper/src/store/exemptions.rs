//! What people want left alone, as rows: appended, and lifted once at most.

use super::{
    Doing as _, Store, StoreError, actions, approvals, approvers,
    audit::{self, Doer, NewEntry},
    corrupt, database_now, findings, from_unix_ms, outbox, to_unix_ms,
};
use crate::{
    audit::Deed,
    detectors::Class,
    exemptions::{Exemption, Exemptions, LONGEST, LeftAlone, Lifted, NotExempted},
    findings::{Finding, FindingId},
};
use jiff::{SignedDuration, Timestamp};
use model::{NotAKey, ResourceKey, plan::Plan};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, DatabaseTransaction, EntityTrait as _,
    QueryFilter as _, QueryOrder as _, QuerySelect as _, sea_query::Expr,
};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "exemptions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub resource: String,
        pub finding_id: Option<String>,
        pub class: Option<String>,
        pub approver: String,
        pub way: String,
        pub at_unix_ms: i64,
        pub until_unix_ms: Option<i64>,
        pub because: Option<String>,
        pub lifted_unix_ms: Option<i64>,
        pub lifted_by: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// What somebody wants left alone.
#[derive(Clone, Debug)]
pub enum Alone {
    /// What a finding is about, with its class of waste.
    Finding(Box<Finding>),
    /// A resource, whatever is found on it.
    Resource(ResourceKey),
}

impl Alone {
    fn resource(&self) -> &ResourceKey {
        match self {
            Self::Finding(finding) => &finding.resource,
            Self::Resource(resource) => resource,
        }
    }

    fn finding(&self) -> Option<&Finding> {
        match self {
            Self::Finding(finding) => Some(finding),
            Self::Resource(_) => None,
        }
    }
}

impl Store {
    /// Leaves something alone: until then, or for good. Its plans are withdrawn, and the messages that ask about them show it. All of it is one transaction, with its entry in the audit log: what is
    /// decided about an action is decided before it or behind it, and which was decided before it is told.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn exempt(
        &self,
        what: &Alone,
        until: Option<Timestamp>,
        because: Option<&str>,
        by: &Doer,
    ) -> Result<Result<LeftAlone, NotExempted>, StoreError> {
        let transaction = self.begin_write().await?;
        // Whoever says the same at the same time waits here.
        audit::lock(&transaction).await?;
        let now = database_now(&transaction).await?;
        if approvers::enrolled(&transaction, &by.who).await?.is_none() {
            return Ok(Err(NotExempted::NotEnrolled { who: by.who.clone() }));
        }
        if let Some(until) = until {
            if until <= now {
                return Ok(Err(NotExempted::Over { until }));
            }
            if until.duration_since(now) > LONGEST {
                return Ok(Err(NotExempted::TooLong { until }));
            }
        }
        let resource = what.resource();
        let new = new(what, until, because, by, now);
        let holding = of(&transaction, resource, now).await?;
        let is_same = |one: &&Exemption| one.approver == new.approver && one.class == new.class && one.until == until;
        if let Some(same) = holding.iter().find(is_same) {
            return Ok(Err(NotExempted::Already { id: same.id.clone() }));
        }
        let new = keep(&transaction, new, by).await?;
        let called = actions::called_on(&transaction, resource).await?;
        transaction.commit().await.doing("commit an exemption")?;
        Ok(Ok(LeftAlone { exemption: new, called }))
    }

    /// Ends an exemption before its time. Whatever still holds there is planned anew by the next sweep.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn lift_exemption(&self, id: &str, by: &Doer) -> Result<Result<Exemption, NotExempted>, StoreError> {
        let transaction = self.begin_write().await?;
        audit::lock(&transaction).await?;
        let now = database_now(&transaction).await?;
        if approvers::enrolled(&transaction, &by.who).await?.is_none() {
            return Ok(Err(NotExempted::NotEnrolled { who: by.who.clone() }));
        }
        let row = row::Entity::find_by_id(id).one(&transaction).await.doing("look up an exemption")?;
        let exemption = row.map(of_row).transpose()?.filter(|one| one.holds(now));
        let Some(mut exemption) = exemption else { return Ok(Err(NotExempted::NoneHolds { id: id.to_owned() })) };
        row::Entity::update_many()
            .col_expr(row::Column::LiftedUnixMs, Expr::value(to_unix_ms(now)))
            .col_expr(row::Column::LiftedBy, Expr::value(by.who.as_str()))
            .filter(row::Column::Id.eq(id))
            .exec(&transaction)
            .await
            .doing("lift an exemption")?;
        exemption.lifted = Some(Lifted { by: by.who.clone(), at: now });
        append(&transaction, &exemption, Deed::Lifted, by).await?;
        transaction.commit().await.doing("commit that an exemption is lifted")?;
        Ok(Ok(exemption))
    }

    /// What people want left alone now; or all that they ever did, the last first.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn exemptions(&self, ended_too: bool) -> Result<Vec<Exemption>, StoreError> {
        let now = database_now(self.connection()).await?;
        let all = row::Entity::find()
            .order_by_desc(row::Column::AtUnixMs)
            .order_by_asc(row::Column::Id)
            .all(self.connection())
            .await
            .doing("read the exemptions")?;
        let all: Vec<_> = all.into_iter().map(of_row).collect::<Result<_, _>>()?;
        Ok(all.into_iter().filter(|one| ended_too || one.holds(now)).collect())
    }
}

/// What somebody's word comes to; it has no name yet.
fn new(what: &Alone, until: Option<Timestamp>, because: Option<&str>, by: &Doer, now: Timestamp) -> Exemption {
    let finding = what.finding();
    Exemption {
        id: String::new(),
        resource: what.resource().clone(),
        finding: finding.map(|finding| finding.id.clone()),
        class: finding.map(|finding| finding.class),
        approver: by.who.clone(),
        way: by.way.to_owned(),
        at: now,
        until,
        because: because.map(str::to_owned),
        lifted: None,
    }
}

/// Names an exemption and keeps it, withdraws the plans that it is about, and shows it where people are asked about them.
async fn keep(transaction: &DatabaseTransaction, new: Exemption, by: &Doer) -> Result<Exemption, StoreError> {
    let text = format!("{}|{}|{}|{:?}", new.resource, by.who, to_unix_ms(new.at), new.until);
    let new = Exemption { id: format!("x-{}", &hex::encode(Sha256::digest(text))[..12]), ..new };
    row::Entity::insert(to_row(&new)).exec_without_returning(transaction).await.doing("keep an exemption")?;
    for finding in findings::withdraw_plans(transaction, &new.resource, &new.line()).await? {
        show(transaction, &finding, &new).await?;
    }
    let did = if new.until.is_some() { Deed::Snoozed } else { Deed::Exempted };
    append(transaction, &new, did, by).await?;
    Ok(new)
}

/// Leaves alone what a plan is about that somebody has just said no to, for so many days as the policy says; not at all if it says none. The end of that.
pub(super) async fn after_a_no(
    transaction: &DatabaseTransaction,
    plan: &Plan,
    (days, because): (u16, Option<&str>),
    by: &Doer,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    if days == 0 {
        return Ok(None);
    }
    let until = now.checked_add(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(Timestamp::MAX);
    let what = match findings::by_id(transaction, &FindingId(plan.content().finding.clone())).await? {
        Some(finding) => Alone::Finding(Box::new(finding)),
        None => Alone::Resource(plan.content().resource.clone()),
    };
    let why = because.map_or_else(String::new, |because| format!(" ({because})"));
    let unit = if days == 1 { "day" } else { "days" };
    let because =
        format!("after a no to the plan {}{why}, for {days} {unit} by the policy", plan.content_hash().short());
    keep(transaction, new(&what, Some(until), Some(&because), by, now), by).await?;
    Ok(Some(until))
}

/// All that hold now.
pub(crate) async fn holding(connection: &impl ConnectionTrait) -> Result<Exemptions, StoreError> {
    let now = database_now(connection).await?;
    Ok(Exemptions::new(read(connection, hold(now)).await?))
}

/// Withdraws the plans of what somebody has wanted left alone since these were read. Whoever does so from now on waits for this transaction wherever it has written.
pub(crate) async fn catch_up(transaction: &impl ConnectionTrait, read: &Exemptions) -> Result<(), StoreError> {
    for (resource, exemption) in holding(transaction).await?.beyond(read) {
        findings::withdraw_plans(transaction, resource, &exemption.line()).await?;
    }
    Ok(())
}

/// Those that hold on a resource.
pub(super) async fn of(
    connection: &impl ConnectionTrait,
    resource: &ResourceKey,
    now: Timestamp,
) -> Result<Vec<Exemption>, StoreError> {
    read(connection, hold(now).add(row::Column::Resource.eq(resource.to_string()))).await
}

/// When somebody last wanted what a finding is about left alone, and nobody told of it; none if nobody ever did.
pub(crate) async fn last_said(
    connection: &impl ConnectionTrait,
    finding: &Finding,
) -> Result<Option<Timestamp>, StoreError> {
    let at: Option<i64> = row::Entity::find()
        .select_only()
        .column(row::Column::AtUnixMs)
        .filter(row::Column::Resource.eq(finding.resource.to_string()))
        .filter(row::Column::Class.eq(finding.class.as_str()))
        .order_by_desc(row::Column::AtUnixMs)
        .into_tuple()
        .one(connection)
        .await
        .doing("look when something was to be left alone")?;
    at.map(from_unix_ms).transpose()
}

fn hold(now: Timestamp) -> Condition {
    let is_to_come =
        Condition::any().add(row::Column::UntilUnixMs.is_null()).add(row::Column::UntilUnixMs.gt(to_unix_ms(now)));
    Condition::all().add(row::Column::LiftedUnixMs.is_null()).add(is_to_come)
}

async fn read(connection: &impl ConnectionTrait, which: Condition) -> Result<Vec<Exemption>, StoreError> {
    let rows = row::Entity::find().filter(which).order_by_asc(row::Column::AtUnixMs).all(connection).await;
    rows.doing("read the exemptions")?.into_iter().map(of_row).collect()
}

/// Shows it in each message that asks about the finding, below what people said of the plan, and asks nobody any more.
async fn show(transaction: &DatabaseTransaction, finding: &FindingId, exemption: &Exemption) -> Result<(), StoreError> {
    for plan in outbox::asked_about(transaction, finding).await? {
        let said = approvals::given(transaction, &plan).await?;
        let lines = said.iter().map(crate::approvals::line).chain([exemption.line()]).collect();
        let shown = outbox::Shown { lines, is_asked_still: false, outcome: None, by: &exemption.id, at: exemption.at };
        outbox::show_answers(transaction, finding, &plan, shown).await?;
    }
    Ok(())
}

async fn append(
    transaction: &DatabaseTransaction,
    exemption: &Exemption,
    did: Deed,
    by: &Doer,
) -> Result<(), StoreError> {
    let mut detail = BTreeMap::from([("exemption".to_owned(), exemption.id.clone())]);
    detail.extend(exemption.finding.iter().map(|finding| ("finding".to_owned(), finding.0.clone())));
    detail.extend(exemption.until.iter().map(|until| ("until".to_owned(), until.to_string())));
    detail.extend(exemption.because.iter().map(|because| ("because".to_owned(), because.clone())));
    audit::append(transaction, NewEntry { by, did, on: &exemption.resource.to_string(), detail }).await
}

fn to_row(exemption: &Exemption) -> row::ActiveModel {
    row::ActiveModel {
        id: Set(exemption.id.clone()),
        resource: Set(exemption.resource.to_string()),
        finding_id: Set(exemption.finding.as_ref().map(|finding| finding.0.clone())),
        class: Set(exemption.class.map(|class| class.as_str().to_owned())),
        approver: Set(exemption.approver.clone()),
        way: Set(exemption.way.clone()),
        at_unix_ms: Set(to_unix_ms(exemption.at)),
        until_unix_ms: Set(exemption.until.map(to_unix_ms)),
        because: Set(exemption.because.clone()),
        lifted_unix_ms: Set(None),
        lifted_by: Set(None),
    }
}

fn of_row(row: row::Model) -> Result<Exemption, StoreError> {
    let unreadable = |why: String| corrupt(format!("the exemption {}", row.id), why);
    // A class that this version does not know is told of: nobody said that it should not be.
    let class = row.class.as_deref().and_then(Class::from_word);
    let lifted_at = row.lifted_unix_ms.map(from_unix_ms).transpose()?;
    Ok(Exemption {
        resource: row.resource.parse().map_err(|error: NotAKey| unreadable(error.to_string()))?,
        finding: row.finding_id.map(FindingId),
        class,
        approver: row.approver,
        way: row.way,
        at: from_unix_ms(row.at_unix_ms)?,
        until: row.until_unix_ms.map(from_unix_ms).transpose()?,
        because: row.because,
        lifted: lifted_at.map(|at| Lifted { by: row.lifted_by.unwrap_or_default(), at }),
        id: row.id,
    })
}
