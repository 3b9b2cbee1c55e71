//! Settings that the sweeper makes up itself and must find again, such as the hash of the fleet token.

use super::{Doing as _, Store, StoreError, entities::setting};
use sea_orm::{ActiveValue::Set, EntityTrait as _, sea_query::OnConflict};

fn row(key: &str, value: &str) -> setting::ActiveModel {
    setting::ActiveModel { key: Set(key.to_owned()), value: Set(value.to_owned()) }
}

impl Store {
    /// The value of a setting, if it has one.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn setting(&self, key: &str) -> Result<Option<String>, StoreError> {
        let found = setting::Entity::find_by_id(key.to_owned()).one(&self.connection).await;
        Ok(found.doing("read a setting")?.map(|row| row.value))
    }

    /// Sets a value unless there is one already, and returns the one that holds: of several sweepers at once one wins, and all learn which.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn put_setting_if_absent(&self, key: &str, value: &str) -> Result<String, StoreError> {
        setting::Entity::insert(row(key, value))
            .on_conflict_do_nothing()
            .exec_without_returning(&self.connection)
            .await
            .doing("write a setting")?;
        Ok(self.setting(key).await?.unwrap_or_else(|| value.to_owned()))
    }

    /// Sets a value, whatever it was before.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn put_setting(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let replace = OnConflict::column(setting::Column::Key).update_column(setting::Column::Value).to_owned();
        setting::Entity::insert(row(key, value))
            .on_conflict(replace)
            .exec_without_returning(&self.connection)
            .await
            .doing("write a setting")?;
        Ok(())
    }
}
