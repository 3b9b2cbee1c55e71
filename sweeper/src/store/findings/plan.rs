//! The plan that a finding has now.

use super::row;
use crate::{
    findings::FindingId,
    store::{Doing as _, StoreError, corrupt},
};
use model::{
    ResourceKey,
    plan::{ContentHash, Plan},
};
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _, QuerySelect as _, sea_query::Expr,
};
use std::collections::HashMap;

/// The hash of the plan that a finding has now; none if it is not open, or has none.
pub(in crate::store) async fn current_plan(
    connection: &impl ConnectionTrait,
    finding: &FindingId,
) -> Result<Option<ContentHash>, StoreError> {
    let plan = row::Entity::find_by_id(&finding.0)
        .select_only()
        .column(row::Column::Plan)
        .filter(row::Column::OpenKey.is_not_null())
        .into_tuple::<Option<String>>()
        .one(connection)
        .await
        .doing("look up a finding's plan")?
        .flatten();
    let hash = |text: String| serde_json::from_str::<Plan>(&text).map(|plan| plan.content_hash().clone());
    plan.map(hash).transpose().map_err(|error| corrupt(format!("the plan of {finding}"), error))
}

/// Takes the plans from all open findings on a resource, for this reason. Returns those findings, with and without a plan.
pub(in crate::store) async fn withdraw_plans(
    transaction: &impl ConnectionTrait,
    resource: &ResourceKey,
    because: &str,
) -> Result<Vec<FindingId>, StoreError> {
    let on_it =
        Condition::all().add(row::Column::Resource.eq(resource.to_string())).add(row::Column::OpenKey.is_not_null());
    row::Entity::update_many()
        .col_expr(row::Column::Plan, Expr::value(None::<String>))
        .col_expr(row::Column::NotProposed, Expr::value(because))
        .filter(on_it.clone())
        .filter(row::Column::Plan.is_not_null())
        .exec(transaction)
        .await
        .doing("withdraw plans")?;
    let ids = row::Entity::find().select_only().column(row::Column::Id).filter(on_it).into_tuple::<String>();
    let ids = ids.all(transaction).await.doing("read what is found on a resource")?;
    Ok(ids.into_iter().map(FindingId).collect())
}

/// What refuted those of these findings that have ended.
pub(in crate::store) async fn closed_because(
    connection: &impl ConnectionTrait,
    ids: &[String],
) -> Result<HashMap<String, String>, StoreError> {
    let mut reasons = HashMap::new();
    // SQLite takes 32,766 parameters.
    for some in ids.chunks(1_000) {
        let found: Vec<(String, Option<String>)> = row::Entity::find()
            .select_only()
            .columns([row::Column::Id, row::Column::ClosedBecause])
            .filter(row::Column::Id.is_in(some.iter().map(String::as_str)))
            .into_tuple()
            .all(connection)
            .await
            .doing("read what ended findings")?;
        reasons.extend(found.into_iter().filter_map(|(id, because)| Some((id, because?))));
    }
    Ok(reasons)
}
