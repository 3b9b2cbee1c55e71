//! What zones offer, as it was last read of each scope, and when each list of prices was last read as a whole.

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms, place::place, to_unix_ms};
use crate::{
    inventory::{Offered, Scope},
    pricing::PriceList,
};
use jiff::Timestamp;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, EntityTrait as _, QueryFilter as _, QuerySelect as _, sea_query::OnConflict,
};
use std::collections::BTreeMap;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "catalogues")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        pub read_unix_ms: i64,
        pub catalogue: Vec<u8>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod list {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "price_lists")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub source: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub operating_system: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub tenancy: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub license_model: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub preinstalled_software: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub capacity_status: String,
        pub read_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// What says of which scope a catalogue is.
const PLACE: [row::Column; 3] = [row::Column::Provider, row::Column::Account, row::Column::Region];
/// Most of it is names of fields.
const COMPRESSION_LEVEL: i32 = 3;
/// The largest that is read.
const MAX_BYTES: usize = 32 << 20;

impl Store {
    /// When what a scope offers was last read; none if it never was.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn catalogue_read_at(&self, scope: &Scope) -> Result<Option<Timestamp>, StoreError> {
        let read: Option<i64> = row::Entity::find()
            .select_only()
            .column(row::Column::ReadUnixMs)
            .filter(place(PLACE, scope.words()))
            .into_tuple()
            .one(self.connection())
            .await
            .doing("read when a catalogue was read")?;
        read.map(from_unix_ms).transpose()
    }

    /// What a scope offers, and when that was read; none if it never was.
    ///
    /// # Errors
    /// If the database does not answer, or what it holds cannot be read by this version.
    pub async fn catalogue(&self, scope: &Scope) -> Result<Option<(Timestamp, Offered)>, StoreError> {
        let found = row::Entity::find().filter(place(PLACE, scope.words())).one(self.connection()).await;
        let Some(found) = found.doing("read a catalogue")? else { return Ok(None) };
        let unpacked = zstd::bulk::decompress(&found.catalogue, MAX_BYTES)
            .and_then(|json| Ok(serde_json::from_slice(&json)?))
            .map_err(|error| corrupt(format!("the catalogue of {} in {}", found.account, found.region), error))?;
        Ok(Some((from_unix_ms(found.read_unix_ms)?, unpacked)))
    }

    /// Keeps what a scope offers, in the place of what was read before.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn put_catalogue(&self, scope: &Scope, offered: &Offered, at: Timestamp) -> Result<(), StoreError> {
        let packed = serde_json::to_vec(offered)
            .map_err(std::io::Error::from)
            .and_then(|json| zstd::bulk::compress(&json, COMPRESSION_LEVEL))
            .map_err(|error| corrupt("a catalogue that was to be kept", error))?;
        let row = row::ActiveModel {
            provider: Set(scope.provider.as_str().to_owned()),
            account: Set(scope.account.clone()),
            region: Set(scope.region.clone()),
            read_unix_ms: Set(to_unix_ms(at)),
            catalogue: Set(packed),
        };
        let replace =
            OnConflict::columns(PLACE).update_columns([row::Column::ReadUnixMs, row::Column::Catalogue]).to_owned();
        let done = row::Entity::insert(row).on_conflict(replace).exec_without_returning(self.connection()).await;
        done.doing("keep a catalogue").map(drop)
    }

    /// Deletes catalogues and the notes of price lists that were last read before `time`, and says how many.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_catalogues_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let catalogues = self.delete_before("catalogues", "read_unix_ms", time, "delete old catalogues").await?;
        let lists = self.delete_before("price_lists", "read_unix_ms", time, "delete notes of old price lists").await?;
        Ok(catalogues + lists)
    }

    /// When each list of prices of this source was last read as a whole.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn price_lists(&self, source: &str) -> Result<BTreeMap<PriceList, Timestamp>, StoreError> {
        let rows = list::Entity::find().filter(list::Column::Source.eq(source)).all(self.connection()).await;
        let mut lists = BTreeMap::new();
        for row in rows.doing("read which price lists were read")? {
            // A provider of a later version is nobody's list here.
            let Some(provider) = model::Provider::from_word(&row.provider) else { continue };
            let of = PriceList {
                provider,
                region: row.region,
                operating_system: row.operating_system,
                tenancy: row.tenancy,
                license_model: row.license_model,
                preinstalled_software: row.preinstalled_software,
                capacity_status: row.capacity_status,
            };
            lists.insert(of, from_unix_ms(row.read_unix_ms)?);
        }
        Ok(lists)
    }

    /// Notes that a list of prices was read as a whole at this time; its prices are kept before ([`Store::put_prices`]).
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn put_price_list(&self, source: &str, of: &PriceList, at: Timestamp) -> Result<(), StoreError> {
        let of = of.clone();
        let row = list::ActiveModel {
            source: Set(source.to_owned()),
            provider: Set(of.provider.as_str().to_owned()),
            region: Set(of.region),
            operating_system: Set(of.operating_system),
            tenancy: Set(of.tenancy),
            license_model: Set(of.license_model),
            preinstalled_software: Set(of.preinstalled_software),
            capacity_status: Set(of.capacity_status),
            read_unix_ms: Set(to_unix_ms(at)),
        };
        let key = [
            list::Column::Source,
            list::Column::Provider,
            list::Column::Region,
            list::Column::OperatingSystem,
            list::Column::Tenancy,
            list::Column::LicenseModel,
            list::Column::PreinstalledSoftware,
            list::Column::CapacityStatus,
        ];
        let replace = OnConflict::columns(key).update_column(list::Column::ReadUnixMs).to_owned();
        let done = list::Entity::insert(row).on_conflict(replace).exec_without_returning(self.connection()).await;
        done.doing("note that a price list was read").map(drop)
    }
}
