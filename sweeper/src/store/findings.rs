//! Findings as rows.

mod closed;
mod plan;

pub(super) use plan::{closed_because, current_plan, withdraw_plans};

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms, to_unix_ms};
use crate::{
    detectors::Class,
    findings::{Evidence, Finding, FindingId, Recorded, Status},
    inventory::Scope,
    pricing::Cost,
    work_unit::WorkUnit,
};
use jiff::Timestamp;
use model::{HourlyRate, NotAKey, ResourceKey};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _, sea_query::OnConflict,
};
use std::collections::HashSet;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "findings")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub class: String,
        pub resource: String,
        /// The resource's key in columns; null in rows of a sweeper of the version before.
        pub provider: Option<String>,
        pub account: Option<String>,
        pub location: Option<String>,
        pub kind: Option<String>,
        pub resource_id: Option<String>,
        pub open_key: Option<String>,
        pub since_unix_ms: i64,
        pub opened_unix_ms: i64,
        pub confirmed_unix_ms: i64,
        pub confirmed_sweeps: i32,
        pub closed_unix_ms: Option<i64>,
        pub closed_because: Option<String>,
        pub cost_micro_usd_per_hour: Option<i64>,
        pub cost_unknown_because: Option<String>,
        pub cost_as_of_unix_ms: Option<i64>,
        pub evidence: String,
        /// What a sweeper of the version before would do; this one leaves it empty.
        pub proposal: Option<String>,
        pub not_proposed: Option<String>,
        pub confirmed_until_unix_ms: Option<i64>,
        pub records: Option<i32>,
        pub recorded_unix_ms: Option<i64>,
        pub recorded_until_unix_ms: Option<i64>,
        pub plan: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| corrupt("a finding", error))
}

fn to_row(finding: &Finding) -> Result<row::ActiveModel, StoreError> {
    let (class, resource) = (finding.class.as_str(), finding.resource.to_string());
    let ResourceKey { provider, account, location, kind, id } = &finding.resource;
    let (open_key, closed_at, because) = match &finding.status {
        Status::Open => (Some(format!("{class}|{resource}")), None, None),
        Status::Closed { at, because } => (None, Some(to_unix_ms(*at)), Some(because.clone())),
    };
    let (rate, as_of, unknown) = match &finding.cost {
        Cost::Known { per_hour, as_of } => (Some(per_hour.per_hour().micros()), *as_of, None),
        Cost::Unknown { why } => (None, None, Some(why.clone())),
    };
    Ok(row::ActiveModel {
        id: Set(finding.id.0.clone()),
        class: Set(class.to_owned()),
        resource: Set(resource),
        provider: Set(Some(provider.as_str().to_owned())),
        account: Set(Some(account.clone())),
        location: Set(Some(location.clone())),
        kind: Set(Some(kind.as_str().to_owned())),
        resource_id: Set(Some(id.clone())),
        open_key: Set(open_key),
        since_unix_ms: Set(to_unix_ms(finding.since)),
        opened_unix_ms: Set(to_unix_ms(finding.opened_at)),
        confirmed_unix_ms: Set(to_unix_ms(finding.confirmed_at)),
        confirmed_sweeps: Set(i32::try_from(finding.confirmed_sweeps).unwrap_or(i32::MAX)),
        closed_unix_ms: Set(closed_at),
        closed_because: Set(because),
        cost_micro_usd_per_hour: Set(rate),
        cost_unknown_because: Set(unknown),
        cost_as_of_unix_ms: Set(as_of.map(to_unix_ms)),
        evidence: Set(json(&finding.evidence)?),
        proposal: Set(None),
        not_proposed: Set(finding.no_plan_because.clone()),
        confirmed_until_unix_ms: Set(Some(to_unix_ms(finding.confirmed_until))),
        records: Set(Some(i32::try_from(finding.recorded.count).unwrap_or(i32::MAX))),
        recorded_unix_ms: Set(finding.recorded.at.map(to_unix_ms)),
        recorded_until_unix_ms: Set(finding.recorded.until.map(to_unix_ms)),
        plan: Set(finding.plan.as_ref().map(json).transpose()?),
    })
}

fn from_row(row: row::Model) -> Result<Finding, StoreError> {
    let unreadable = |reason: String| corrupt(format!("finding {}", row.id), reason);
    let plan = row.plan.as_deref().map(serde_json::from_str).transpose();
    let evidence: Evidence = serde_json::from_str(&row.evidence).map_err(|error| unreadable(error.to_string()))?;
    let confirmed_at = from_unix_ms(row.confirmed_unix_ms)?;
    let class = Class::from_word(&row.class).ok_or_else(|| unreadable(format!("class `{}`", row.class)))?;
    // A sweeper of the version before, which knows these two, writes newer evidence and leaves the column alone.
    let written = evidence.until().filter(|_| matches!(class, Class::IdleNode | Class::QuietInstance));
    let until = row.confirmed_until_unix_ms.map(from_unix_ms).transpose()?.max(written);
    Ok(Finding {
        class,
        resource: row.resource.parse().map_err(|error: NotAKey| unreadable(error.to_string()))?,
        status: match row.closed_unix_ms {
            None => Status::Open,
            Some(at) => {
                Status::Closed { at: from_unix_ms(at)?, because: row.closed_because.clone().unwrap_or_default() }
            }
        },
        since: from_unix_ms(row.since_unix_ms)?,
        opened_at: from_unix_ms(row.opened_unix_ms)?,
        confirmed_at,
        confirmed_until: until.unwrap_or(confirmed_at),
        confirmed_sweeps: row.confirmed_sweeps.unsigned_abs(),
        cost: match row.cost_micro_usd_per_hour {
            Some(micros) => Cost::Known {
                per_hour: HourlyRate::from_micros(micros),
                as_of: row.cost_as_of_unix_ms.map(from_unix_ms).transpose()?,
            },
            None => Cost::Unknown { why: row.cost_unknown_because.clone().unwrap_or_default() },
        },
        evidence,
        recorded: Recorded {
            count: row.records.unwrap_or_default().unsigned_abs(),
            at: row.recorded_unix_ms.map(from_unix_ms).transpose()?,
            until: row.recorded_until_unix_ms.map(from_unix_ms).transpose()?,
        },
        plan: plan.map_err(|error| unreadable(error.to_string()))?,
        no_plan_because: row.not_proposed.clone(),
        id: FindingId(row.id),
    })
}

impl Store {
    /// All open findings, oldest first.
    ///
    /// # Errors
    /// If the database does not answer or holds a finding of another version.
    pub async fn open_findings(&self) -> Result<Vec<Finding>, StoreError> {
        open_in(self.connection(), None).await
    }

    /// The findings that were closed last, newest first.
    ///
    /// # Errors
    /// As [`Self::open_findings`].
    pub async fn closed_findings(&self, most: u64) -> Result<Vec<Finding>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::ClosedUnixMs.is_not_null())
            .order_by_desc(row::Column::ClosedUnixMs)
            .limit(most)
            .all(self.connection())
            .await
            .doing("read the closed findings")?;
        rows.into_iter().map(from_row).collect()
    }

    /// The findings whose id begins like this, at most three: a person types as much as makes it unique.
    ///
    /// # Errors
    /// As [`Self::open_findings`].
    pub async fn findings_by_prefix(&self, prefix: &str) -> Result<Vec<Finding>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::Id.starts_with(prefix))
            .order_by_asc(row::Column::Id)
            .limit(3)
            .all(self.connection())
            .await
            .doing("look up a finding")?;
        rows.into_iter().map(from_row).collect()
    }
}

impl Store {
    /// The finding of this id, whether it is open or over.
    ///
    /// # Errors
    /// As [`Self::open_findings`].
    pub async fn finding(&self, id: &str) -> Result<Option<Finding>, StoreError> {
        by_id(self.connection(), &FindingId(id.to_owned())).await
    }

    /// The resources on which a finding of this class was opened since then, whether it holds still or not.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn found_since(&self, class: Class, since: Timestamp) -> Result<HashSet<String>, StoreError> {
        let resources: Vec<String> = row::Entity::find()
            .select_only()
            .column(row::Column::Resource)
            .filter(row::Column::Class.eq(class.as_str()))
            .filter(row::Column::OpenedUnixMs.gte(to_unix_ms(since)))
            .into_tuple()
            .all(self.connection())
            .await
            .doing("read which resources were found")?;
        Ok(resources.into_iter().collect())
    }
}

/// Opens a finding. False if another sweeper has opened one of this class on this resource meanwhile.
///
/// # Errors
/// [`StoreError::Collision`] if a finding of something else has its id already: 48 bits are short enough to type, and not beyond chance.
pub(crate) async fn open(transaction: &impl ConnectionTrait, finding: &Finding) -> Result<bool, StoreError> {
    let inserted = row::Entity::insert(to_row(finding)?)
        // Whichever key it is that stands in the way: the id, or the one open finding of this class on this resource.
        .on_conflict(OnConflict::new().do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await
        .doing("write a finding")?;
    if inserted == 1 {
        return Ok(true);
    }
    let same_id = row::Entity::find_by_id(finding.id.0.clone()).one(transaction).await.doing("look up a finding")?;
    let is_another =
        |row: &row::Model| row.class != finding.class.as_str() || row.resource != finding.resource.to_string();
    match same_id {
        Some(row) if is_another(&row) => Err(StoreError::Collision { id: finding.id.0.clone() }),
        _ => Ok(false),
    }
}

/// Writes a finding that is open in the database and was confirmed at `was_confirmed_at` when it was read. False if
/// another sweeper has changed it meanwhile; its word is newer then.
pub(crate) async fn update(
    transaction: &impl ConnectionTrait,
    finding: &Finding,
    was_confirmed_at: Timestamp,
) -> Result<bool, StoreError> {
    let updated = row::Entity::update_many()
        .set(to_row(finding)?)
        .filter(row::Column::Id.eq(&finding.id.0))
        .filter(row::Column::OpenKey.is_not_null())
        .filter(row::Column::ConfirmedUnixMs.eq(to_unix_ms(was_confirmed_at)))
        .exec(transaction)
        .await
        .doing("write a finding")?;
    Ok(updated.rows_affected == 1)
}

/// The open findings on resources that may be of this work unit, or on all, as a transaction sees them; oldest first.
pub(crate) async fn open_in(
    connection: &impl ConnectionTrait,
    unit: Option<&WorkUnit>,
) -> Result<Vec<Finding>, StoreError> {
    let rows = row::Entity::find()
        .filter(row::Column::OpenKey.is_not_null())
        .apply_if(unit.and_then(may_be_of), |findings, is_here| findings.filter(is_here))
        .order_by_asc(row::Column::SinceUnixMs)
        .order_by_asc(row::Column::Id)
        .all(connection)
        .await
        .doing("read the open findings")?;
    // What a later version calls by a name of its own is left to that one.
    rows.into_iter().filter(|row| Class::from_word(&row.class).is_some()).map(from_row).collect()
}

/// Whether a finding may be of a work unit, as far as its columns tell; none if that hangs on which scopes are known.
fn may_be_of(unit: &WorkUnit) -> Option<Condition> {
    let WorkUnit::Scope(Scope { provider, account, region }) = unit else { return None };
    let mut here = Condition::all()
        .add(row::Column::Provider.eq(provider.as_str()))
        .add(row::Column::Account.eq(account.as_str()));
    if region != Scope::EVERYWHERE {
        here = here.add(row::Column::Location.eq(region.as_str()));
    }
    Some(Condition::any().add(here).add(row::Column::Provider.is_null()))
}

/// So many closed findings are read at once, with all their evidence, by each sweep that asks.
const CLOSED: u64 = 2_000;

/// The findings of one class on resources that may be of this work unit that were closed since then, the latest first.
pub(crate) async fn closed_of(
    connection: &impl ConnectionTrait,
    unit: &WorkUnit,
    class: Class,
    since: Timestamp,
) -> Result<Vec<Finding>, StoreError> {
    let rows = row::Entity::find()
        .filter(row::Column::Class.eq(class.as_str()))
        .filter(row::Column::ClosedUnixMs.gte(to_unix_ms(since)))
        .apply_if(may_be_of(unit), |findings, is_here| findings.filter(is_here))
        .order_by_desc(row::Column::ClosedUnixMs)
        .limit(CLOSED)
        .all(connection)
        .await
        .doing("read the findings that were closed lately")?;
    rows.into_iter().map(from_row).collect()
}

/// The finding of this id, whether it is open or over.
pub(crate) async fn by_id(connection: &impl ConnectionTrait, id: &FindingId) -> Result<Option<Finding>, StoreError> {
    let row = row::Entity::find_by_id(&id.0).one(connection).await;
    row.doing("look up a finding")?.map(from_row).transpose()
}

/// The ids of all findings, oldest first.
pub(super) async fn ids(connection: &impl ConnectionTrait) -> Result<Vec<FindingId>, StoreError> {
    let ids = row::Entity::find()
        .select_only()
        .column(row::Column::Id)
        .order_by_asc(row::Column::OpenedUnixMs)
        .order_by_asc(row::Column::Id)
        .into_tuple::<String>()
        .all(connection)
        .await
        .doing("list the findings")?;
    Ok(ids.into_iter().map(FindingId).collect())
}

/// The finding of this class on this resource that was closed last, if it was since then.
pub(crate) async fn closed_since(
    transaction: &impl ConnectionTrait,
    finding: &Finding,
    since: Timestamp,
) -> Result<Option<FindingId>, StoreError> {
    let id = row::Entity::find()
        .select_only()
        .column(row::Column::Id)
        .filter(row::Column::Resource.eq(finding.resource.to_string()))
        .filter(row::Column::Class.eq(finding.class.as_str()))
        .filter(row::Column::ClosedUnixMs.gte(to_unix_ms(since)))
        .order_by_desc(row::Column::ClosedUnixMs)
        .order_by_desc(row::Column::OpenedUnixMs)
        .into_tuple::<String>()
        .one(transaction)
        .await
        .doing("look for a finding that was closed")?;
    Ok(id.map(FindingId))
}

/// Which of these findings are open.
pub(super) async fn open_among(
    connection: &impl ConnectionTrait,
    ids: Vec<String>,
) -> Result<HashSet<String>, StoreError> {
    let mut open = HashSet::new();
    // SQLite takes 32,766 parameters.
    for some in ids.chunks(1_000) {
        let found = row::Entity::find()
            .select_only()
            .column(row::Column::Id)
            .filter(row::Column::Id.is_in(some.iter().map(String::as_str)))
            .filter(row::Column::OpenKey.is_not_null())
            .into_tuple::<String>()
            .all(connection)
            .await
            .doing("look which findings are open")?;
        open.extend(found);
    }
    Ok(open)
}

/// Since when a finding's waste lasts, and when it was opened; none if there is no such finding.
pub(super) async fn began(
    connection: &impl ConnectionTrait,
    finding: &FindingId,
) -> Result<Option<[Timestamp; 2]>, StoreError> {
    let times = row::Entity::find_by_id(&finding.0)
        .select_only()
        .columns([row::Column::SinceUnixMs, row::Column::OpenedUnixMs])
        .into_tuple::<(i64, i64)>()
        .one(connection)
        .await
        .doing("look up when a finding began")?;
    times.map(|(since, opened)| Ok([from_unix_ms(since)?, from_unix_ms(opened)?])).transpose()
}
