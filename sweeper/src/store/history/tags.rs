//! The tags that a resource carried when it was last listed.

use super::rows::version;
use crate::store::{Doing as _, Store, StoreError};
use model::{Provider, ResourceKey};
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a record says of tags.
#[derive(Deserialize)]
struct Tagged {
    tags: BTreeMap<String, String>,
}

/// The tags that a resource carried when it was last listed; none if nobody knows, and no tags of what is on premises, where there are none. A record that cannot
/// be read tells none: nobody's message fails because of it.
pub(crate) async fn tags_last(
    connection: &impl ConnectionTrait,
    resource: &ResourceKey,
) -> Result<Option<BTreeMap<String, String>>, StoreError> {
    if resource.provider == Provider::OnPrem {
        return Ok(Some(BTreeMap::new()));
    }
    let last = version::Entity::find()
        .select_only()
        .column(version::Column::Record)
        // Its kind belongs to the key by which it is found.
        .filter(version::Column::Kind.eq(resource.kind.as_str()))
        .filter(version::Column::Resource.eq(resource.to_string()))
        .order_by_desc(version::Column::FromUnixMs)
        .into_tuple::<String>()
        .one(connection)
        .await
        .doing("read which tags a resource carried")?;
    Ok(last.and_then(|record| serde_json::from_str::<Tagged>(&record).ok()).map(|tagged| tagged.tags))
}

impl Store {
    /// The tags that a resource carried when it was last listed; none if nobody knows.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn tags_last(&self, resource: &ResourceKey) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        tags_last(self.connection(), resource).await
    }
}
