//! What a resource was before a finding on it began.

use super::{rows::version, version_of};
use crate::{
    findings::FindingId,
    store::{Doing as _, Store, StoreError, findings, to_unix_ms},
};
use model::{ResourceKey, plan::Plan};
use sea_orm::{ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _};
use std::collections::BTreeMap;

/// The tags that a resource carried before a finding on it began, or when it was first listed if that was before the finding was opened; none if nobody
/// knows. What somebody tags a machine with once it was found idle gives nobody a say.
pub(crate) async fn tags_before(
    connection: &impl ConnectionTrait,
    finding: &FindingId,
    resource: &ResourceKey,
) -> Result<Option<BTreeMap<String, String>>, StoreError> {
    let Some([since, opened]) = findings::began(connection, finding).await? else { return Ok(None) };
    let rows = version::Entity::find()
        .filter(version::Column::Resource.eq(resource.to_string()))
        .filter(version::Column::FromUnixMs.lte(to_unix_ms(opened)))
        .order_by_asc(version::Column::FromUnixMs)
        .all(connection)
        .await
        .doing("read what a resource was before")?;
    let before = rows.iter().rfind(|row| row.from_unix_ms <= to_unix_ms(since)).or(rows.first()).cloned();
    let Some(version) = before.map(version_of).transpose()? else { return Ok(None) };
    Ok(serde_json::from_value(version.record["tags"].clone()).ok())
}

impl Store {
    /// The tags that a plan's resource carried before its finding began; none if nobody knows.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn tags_before(&self, plan: &Plan) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        let content = plan.content();
        tags_before(self.connection(), &FindingId(content.finding.clone()), &content.resource).await
    }
}
