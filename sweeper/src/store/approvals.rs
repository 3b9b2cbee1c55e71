//! What people said of plans, as rows: each answer once, and for good.

use super::{
    Doing as _, Store, StoreError, approvers,
    audit::{self, Doer, NewEntry},
    database_now, exemptions, from_unix_ms, outbox, plans, to_unix_ms,
};
use crate::{
    approvals::{Answer, Given, NotAnswered, Tally},
    audit::Deed,
    findings::FindingId,
};
use guards::{
    act::Say,
    policy::{Asked, Policy},
};
use model::plan::{ContentHash, Plan};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, sea_query::OnConflict,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// SQLite takes 32,766 parameters.
const AT_ONCE: usize = 1_000;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "approvals")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub plan_hash: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub approver: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub enrolled_unix_ms: i64,
        #[sea_orm(primary_key, auto_increment = false)]
        pub answer: String,
        pub way: String,
        pub at_unix_ms: i64,
        pub rule: Option<String>,
        pub because: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

impl Store {
    /// Says yes or no to exactly one plan, for somebody who is known, under this policy, whose digest is kept with it. The answer and its entry in the audit log are one transaction.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn answer(
        &self,
        hash: &ContentHash,
        answer: Answer,
        because: Option<&str>,
        by: &Doer,
        (policy, policy_sha256): (&Policy, &str),
    ) -> Result<Result<Tally, NotAnswered>, StoreError> {
        let transaction = self.begin_write().await?;
        let now = database_now(&transaction).await?;
        let Some(enrolled_unix_ms) = approvers::enrolled(&transaction, &by.who).await? else {
            return Ok(Err(NotAnswered::NotEnrolled { who: by.who.clone() }));
        };
        let Some(plan) = plans::by_hash(&transaction, hash).await? else { return Ok(Err(NotAnswered::NoPlan)) };
        let finding = FindingId(plan.content().finding.clone());
        let left_alone = exemptions::of(&transaction, &plan.content().resource, now).await?;
        if let (Answer::Approve, Some(exemption)) = (answer, left_alone.first()) {
            return Ok(Err(NotAnswered::LeftAlone { said: exemption.line() }));
        }
        if super::findings::current_plan(&transaction, &finding).await?.as_ref() != Some(hash) {
            return Ok(Err(NotAnswered::Withdrawn));
        }
        if plan.valid_until() <= now {
            return Ok(Err(NotAnswered::Expired { at: plan.valid_until() }));
        }
        let before = given(&transaction, hash).await?;
        if let Some(no) = before.iter().find(|one| one.answer == Answer::Deny) {
            return Ok(Err(NotAnswered::Denied { by: no.approver.clone() }));
        }
        let tags_before = super::history::tags_before(&transaction, &finding, &plan.content().resource).await?;
        let asked = Asked { who: &by.who, plan: &plan, tags_before: tags_before.as_ref(), at: now };
        let allowed = match (answer, policy.may_approve(asked)) {
            (Answer::Approve, Err(why)) => return Ok(Err(NotAnswered::NotAllowed(why))),
            (_, allowed) => allowed.ok(),
        };
        let new = row::ActiveModel {
            plan_hash: Set(hash.to_string()),
            approver: Set(by.who.clone()),
            enrolled_unix_ms: Set(enrolled_unix_ms),
            answer: Set(answer.as_str().to_owned()),
            way: Set(by.way.to_owned()),
            at_unix_ms: Set(to_unix_ms(now)),
            rule: Set(allowed.as_ref().map(|allowed| allowed.rule.to_owned())),
            because: Set(because.map(str::to_owned)),
        };
        let inserted = row::Entity::insert(new)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .exec_without_returning(&transaction)
            .await
            .doing("keep an answer")?;
        if inserted == 0 {
            return Ok(Err(NotAnswered::Already));
        }
        let did = match answer {
            Answer::Approve => Deed::Approved,
            Answer::Deny => Deed::Denied,
        };
        let mut detail = BTreeMap::from([
            ("finding".to_owned(), finding.0.clone()),
            ("resource".to_owned(), plan.content().resource.to_string()),
            ("policy_sha256".to_owned(), policy_sha256.to_owned()),
        ]);
        detail.extend(because.map(|because| ("because".to_owned(), because.to_owned())));
        detail.extend(allowed.as_ref().map(|allowed| ("rule".to_owned(), allowed.rule.to_owned())));
        audit::append(&transaction, NewEntry { by, did, on: hash.as_str(), detail }).await?;
        let mut tally = tally(&transaction, &plan, allowed.map(|allowed| allowed.needs)).await?;
        let is_asked_still = answer == Answer::Approve && !tally.is_approved();
        let said = given(&transaction, hash).await?;
        let lines = said.iter().map(crate::approvals::line).collect();
        let shown = outbox::Shown { lines, is_asked_still, outcome: None, by: &said.len().to_string(), at: now };
        outbox::show_answers(&transaction, &finding, hash, shown).await?;
        if answer == Answer::Deny && left_alone.is_empty() {
            let snooze = (policy.snooze_after_no_days, because);
            tally.snoozed_until = exemptions::after_a_no(&transaction, &plan, snooze, by, now).await?;
        }
        transaction.commit().await.doing("commit an answer")?;
        Ok(Ok(tally))
    }

    /// How many plans anybody has approved, and how many somebody has denied.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn answered_plans(&self) -> Result<[u64; 2], StoreError> {
        let count = async |answer: Answer| {
            let plans = row::Entity::find().select_only().column(row::Column::PlanHash).distinct();
            let plans = plans.filter(row::Column::Answer.eq(answer.as_str())).into_tuple::<String>();
            let plans = plans.all(self.connection()).await.doing("count what was said of plans")?;
            Ok::<_, StoreError>(u64::try_from(plans.len()).unwrap_or(u64::MAX))
        };
        Ok([count(Answer::Approve).await?, count(Answer::Deny).await?])
    }

    /// What was said of these plans, by their hashes, the first answer first.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn answers(&self, hashes: &[String]) -> Result<HashMap<String, Vec<Given>>, StoreError> {
        let mut all: HashMap<String, Vec<Given>> = HashMap::new();
        for some in hashes.chunks(AT_ONCE) {
            for row in rows(self.connection(), some).await? {
                all.entry(row.plan_hash.clone()).or_default().push(of_row(row)?);
            }
        }
        Ok(all)
    }
}

/// The hashes of all plans that anybody has approved.
pub(super) async fn approved(connection: &impl ConnectionTrait) -> Result<HashSet<String>, StoreError> {
    let hashes: Vec<String> = row::Entity::find()
        .select_only()
        .column(row::Column::PlanHash)
        .filter(row::Column::Answer.eq(Answer::Approve.as_str()))
        .into_tuple()
        .all(connection)
        .await
        .doing("read which plans were approved")?;
    Ok(hashes.into_iter().collect())
}

async fn rows(connection: &impl ConnectionTrait, hashes: &[String]) -> Result<Vec<row::Model>, StoreError> {
    row::Entity::find()
        .filter(row::Column::PlanHash.is_in(hashes.iter().map(String::as_str)))
        .order_by_asc(row::Column::AtUnixMs)
        .order_by_asc(row::Column::Approver)
        .all(connection)
        .await
        .doing("read what was said of a plan")
}

pub(crate) async fn given(connection: &impl ConnectionTrait, hash: &ContentHash) -> Result<Vec<Given>, StoreError> {
    rows(connection, &[hash.to_string()]).await?.into_iter().map(of_row).collect()
}

/// What was said of a plan, each with since when whoever said so is enrolled.
pub(super) async fn says(
    connection: &impl ConnectionTrait,
    hash: &ContentHash,
    enrolled: &BTreeMap<String, i64>,
) -> Result<Vec<Say>, StoreError> {
    let say = |row: row::Model| {
        let since = enrolled.get(&row.approver).copied().map(from_unix_ms).transpose()?;
        let Given { answer, at, approver, .. } = of_row(row)?;
        Ok(Say { approver, answer, at, enrolled_since: since })
    };
    rows(connection, &[hash.to_string()]).await?.into_iter().map(say).collect()
}

fn of_row(row: row::Model) -> Result<Given, StoreError> {
    let answer =
        Answer::from_word(&row.answer).ok_or_else(|| super::corrupt("an answer", format!("`{}`", row.answer)))?;
    let row::Model { approver, way, because, at_unix_ms, .. } = row;
    Ok(Given { answer, at: from_unix_ms(at_unix_ms)?, approver, way, because })
}

/// Who has approved of those that are enrolled still, and were not removed in between.
async fn tally(connection: &impl ConnectionTrait, plan: &Plan, needs: Option<u32>) -> Result<Tally, StoreError> {
    let enrolled = approvers::all_enrolled(connection).await?;
    let counts = |row: &row::Model| {
        row.answer == Answer::Approve.as_str() && enrolled.get(&row.approver) == Some(&row.enrolled_unix_ms)
    };
    let approved = rows(connection, &[plan.content_hash().to_string()]).await?.into_iter().filter(counts);
    Ok(Tally { approved_by: approved.map(|row| row.approver).collect(), needs, snoozed_until: None })
}
