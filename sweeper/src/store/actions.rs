//! Actions as rows: claimed once, held by an epoch, and carried on by whoever finds one that nobody was heard of for too long (`claim`); each change of
//! state with its entry in the audit log (`tell`); undone in somebody's name (`undo`), or by somebody else's hand (`relapse`); and what else is done in its account meanwhile (`beside`).

mod beside;
mod claim;
mod relapse;
mod tell;
mod undo;

pub(super) use beside::{called_beside, called_on, carried_out, has_relapsed};
pub(crate) use relapse::note_relapse;
pub(crate) use tell::{tell, will_copy};
pub use undo::NotUndone;
pub(crate) use undo::{undo_again, undo_for_work};

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms};
use crate::findings::FindingId;
use guards::action::State;
use jiff::Timestamp;
use model::{
    ResourceKey,
    plan::{ActionClass, ContentHash, Plan},
};
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
};
use serde::Serialize;
use std::{collections::HashSet, time::Duration};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "actions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub plan_hash: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub direction: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub attempt: i32,
        pub finding_id: String,
        pub resource: String,
        pub account: String,
        pub class: String,
        pub asked_by: String,
        pub state: String,
        pub epoch: i64,
        pub holder: String,
        pub held_until_unix_ms: i64,
        pub claimed_unix_ms: i64,
        pub changed_unix_ms: i64,
        pub called_unix_ms: Option<i64>,
        pub copied_unix_ms: Option<i64>,
        pub request_id: Option<String>,
        pub outcome: Option<String>,
        pub rests_on: Option<String>,
        pub relapsed_unix_ms: Option<i64>,
        pub relapsed_because: Option<String>,
        pub reviewed_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Whether a plan is done or undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Its actions.
    Do,
    /// Its reversal.
    Undo,
}

impl Direction {
    /// The word for it in rows, events and the audit log.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Do => "do",
            Self::Undo => "undo",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Do, Self::Undo].into_iter().find(|direction| direction.as_str() == word)
    }
}

/// One action, as its row has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Action {
    /// Of which plan.
    pub plan: ContentHash,
    /// Whether it is done or undone.
    pub direction: Direction,
    /// Counted from 1.
    pub attempt: u32,
    /// The finding that the plan would end.
    pub finding: FindingId,
    /// What it is on.
    pub resource: ResourceKey,
    /// The worst that its plan does.
    pub class: ActionClass,
    /// Who approved it, or wants it undone.
    pub asked_by: Vec<String>,
    /// How far it is.
    pub state: State,
    /// Of whoever holds it.
    pub epoch: i64,
    /// That is.
    pub holder: String,
    /// When it was claimed first.
    pub claimed_at: Timestamp,
    /// When its state last changed.
    pub changed_at: Timestamp,
    /// When it was written that the call leaves.
    pub called_at: Option<Timestamp>,
    /// When it was first written that a snapshot is made for it.
    pub copied_at: Option<Timestamp>,
    /// The provider's name for the call that it took.
    pub request_id: Option<String>,
    /// What became of it, or what it waits for.
    pub outcome: Option<String>,
    /// When it came undone, and by what; none if it did not.
    pub relapsed: Option<(Timestamp, String)>,
    /// Whether somebody has looked at that.
    pub is_reviewed: bool,
}

impl Action {
    /// Whether the resource may be, or get, where the action was to bring it: it is over, and the provider was called. A machine that was slow to shut down may be off by
    /// now, though nobody waited for that.
    #[must_use]
    pub fn may_have_been_done(&self) -> bool {
        self.called_at.is_some() && matches!(self.state, State::Done | State::Failed)
    }
}

/// What is written with a change of state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) outcome: Option<String>,
    pub(crate) request_id: Option<String>,
    /// As JSON.
    pub(crate) rests_on: Option<String>,
    /// After so long it is tried once more.
    pub(crate) again: Option<Duration>,
    /// What the machine did after it was asked, and before it was off.
    pub(crate) until_off: Option<Until>,
}

/// What a machine did until it was off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Something ran, which its own shutdown may have been.
    Ran,
    /// Work had begun: it is started again.
    Worked,
}

impl Told {
    /// In words alone.
    pub(crate) fn that(outcome: impl Into<String>) -> Self {
        Self { outcome: Some(outcome.into()), ..Self::default() }
    }
}

/// Of a claim: what nobody has claimed before.
#[derive(Debug)]
pub(crate) struct NewAction<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) direction: Direction,
    pub(crate) attempt: u32,
    pub(crate) asked_by: &'a [String],
}

fn class(plan: &Plan) -> &'static str {
    word_of(plan.class())
}

const fn word_of(class: ActionClass) -> &'static str {
    match class {
        ActionClass::Reversible => "reversible",
        ActionClass::Destructive => "destructive",
    }
}

fn class_of(word: &str) -> Option<ActionClass> {
    [ActionClass::Reversible, ActionClass::Destructive].into_iter().find(|class| word_of(*class) == word)
}

/// The row of an action that begins now; whoever looks first takes it, once that time is over.
fn new_row(new: &NewAction<'_>, holder: &str, now: i64, held_until: i64) -> row::Model {
    let content = new.plan.content();
    row::Model {
        plan_hash: new.plan.content_hash().to_string(),
        direction: new.direction.as_str().to_owned(),
        attempt: i32::try_from(new.attempt).unwrap_or(i32::MAX),
        finding_id: content.finding.clone(),
        resource: content.resource.to_string(),
        account: content.resource.account.clone(),
        class: class(new.plan).to_owned(),
        asked_by: new.asked_by.join(","),
        state: State::Claimed.as_str().to_owned(),
        epoch: 1,
        holder: holder.to_owned(),
        held_until_unix_ms: held_until,
        claimed_unix_ms: now,
        changed_unix_ms: now,
        called_unix_ms: None,
        copied_unix_ms: None,
        request_id: None,
        outcome: None,
        rests_on: None,
        relapsed_unix_ms: None,
        relapsed_because: None,
        reviewed_unix_ms: None,
    }
}

fn of_row(row: row::Model) -> Result<Action, StoreError> {
    let damaged = |what: &str| corrupt(format!("the action on {}", row.plan_hash), format!("its {what}"));
    let relapsed = row.relapsed_unix_ms.map(from_unix_ms).transpose()?;
    Ok(Action {
        plan: row.plan_hash.clone().try_into().map_err(|_| damaged("plan"))?,
        direction: Direction::from_word(&row.direction).ok_or_else(|| damaged("direction"))?,
        attempt: row.attempt.unsigned_abs(),
        finding: FindingId(row.finding_id.clone()),
        resource: row.resource.parse().map_err(|_| damaged("resource"))?,
        class: class_of(&row.class).ok_or_else(|| damaged("class"))?,
        asked_by: row.asked_by.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        state: State::from_word(&row.state).ok_or_else(|| damaged("state"))?,
        epoch: row.epoch,
        claimed_at: from_unix_ms(row.claimed_unix_ms)?,
        changed_at: from_unix_ms(row.changed_unix_ms)?,
        called_at: row.called_unix_ms.map(from_unix_ms).transpose()?,
        copied_at: row.copied_unix_ms.map(from_unix_ms).transpose()?,
        relapsed: relapsed.map(|at| (at, row.relapsed_because.clone().unwrap_or_default())),
        is_reviewed: row.reviewed_unix_ms.is_some(),
        holder: row.holder,
        request_id: row.request_id,
        outcome: row.outcome,
    })
}

/// The row of an action, as long as nobody has taken it over.
fn held(action: &Action) -> Condition {
    Condition::all()
        .add(row::Column::PlanHash.eq(action.plan.as_str()))
        .add(row::Column::Direction.eq(action.direction.as_str()))
        .add(row::Column::Attempt.eq(i32::try_from(action.attempt).unwrap_or(i32::MAX)))
        .add(row::Column::Epoch.eq(action.epoch))
        .add(row::Column::State.eq(action.state.as_str()))
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Store {
    /// The latest actions, newest first.
    ///
    /// # Errors
    /// If the database does not answer, or holds what this version never wrote.
    pub async fn actions(&self, most: u64) -> Result<Vec<Action>, StoreError> {
        let rows = row::Entity::find()
            .order_by_desc(row::Column::ClaimedUnixMs)
            .order_by_asc(row::Column::PlanHash)
            .order_by_desc(row::Column::Direction)
            .order_by_desc(row::Column::Attempt)
            .limit(most)
            .all(self.connection())
            .await
            .doing("read the actions")?;
        rows.into_iter().map(of_row).collect()
    }

    /// What was made of a plan, the first attempt first.
    ///
    /// # Errors
    /// As [`Self::actions`].
    pub async fn actions_on(&self, plan: &ContentHash) -> Result<Vec<Action>, StoreError> {
        on(self.connection(), plan).await
    }
}

/// All actions on a plan, in the order of their rows.
pub(crate) async fn of_plan(connection: &impl ConnectionTrait, plan: &ContentHash) -> Result<Vec<Action>, StoreError> {
    let mut all = on(connection, plan).await?;
    all.sort_by_key(|action| (action.claimed_at, action.attempt));
    Ok(all)
}

async fn on(connection: &impl ConnectionTrait, plan: &ContentHash) -> Result<Vec<Action>, StoreError> {
    let rows = row::Entity::find()
        .filter(row::Column::PlanHash.eq(plan.as_str()))
        .order_by_asc(row::Column::Direction)
        .order_by_asc(row::Column::Attempt)
        .all(connection)
        .await
        .doing("read what was made of a plan")?;
    rows.into_iter().map(of_row).collect()
}

/// Which of these plans were carried out, or came to nothing: another plan takes the place of each.
pub(crate) async fn over(connection: &impl ConnectionTrait, plans: &[String]) -> Result<HashSet<String>, StoreError> {
    let over = State::ALL.into_iter().filter(|state| state.is_final()).map(State::as_str);
    let mut all = HashSet::new();
    // SQLite takes 32,766 parameters.
    for some in plans.chunks(1_000) {
        let hashes: Vec<String> = row::Entity::find()
            .select_only()
            .column(row::Column::PlanHash)
            .filter(row::Column::PlanHash.is_in(some.iter().map(String::as_str)))
            .filter(row::Column::Direction.eq(Direction::Do.as_str()))
            .filter(row::Column::State.is_in(over.clone()))
            .into_tuple()
            .all(connection)
            .await
            .doing("look which plans are over")?;
        all.extend(hashes);
    }
    Ok(all)
}
