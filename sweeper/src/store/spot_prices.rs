//! Spot prices as EC2 told them, each from when on.

use super::{Doing as _, Store, StoreError, from_unix_ms, to_unix_ms};
use crate::pricing::{SpotChange, SpotKey};
use jiff::Timestamp;
use model::{HourlyRate, Provider};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _, sea_query::OnConflict,
};
use std::collections::{BTreeMap, BTreeSet};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "spot_prices")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub zone: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub instance_type: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub product: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub effective_unix_ms: i64,
        pub read_unix_ms: i64,
        pub micro_usd_per_hour: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of one statement. SQLite takes 32,766 values in one, and a row has eight.
const ROWS: usize = 1_000;

/// A Spot price, as it was last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSpot {
    /// The last change that was told.
    pub change: SpotChange,
    /// When it was last read to be the price in effect.
    pub read_at: Timestamp,
}

impl Store {
    /// The last change of each of these prices that was ever read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn spot_prices(&self, keys: &BTreeSet<SpotKey>) -> Result<BTreeMap<SpotKey, KnownSpot>, StoreError> {
        let zones: BTreeSet<&str> = keys.iter().map(|key| key.zone.as_str()).collect();
        let accounts: BTreeSet<&str> = keys.iter().map(|key| key.account.as_str()).collect();
        let rows = row::Entity::find()
            .filter(row::Column::Provider.eq(Provider::Aws.as_str()))
            .filter(row::Column::Account.is_in(accounts))
            .filter(row::Column::Zone.is_in(zones))
            .order_by_asc(row::Column::EffectiveUnixMs)
            .all(self.connection())
            .await
            .doing("read Spot prices")?;
        let mut known = BTreeMap::new();
        for row in rows {
            let key = SpotKey {
                account: row.account,
                zone: row.zone,
                instance_type: row.instance_type,
                product: row.product,
            };
            if keys.contains(&key) {
                let per_hour = HourlyRate::from_micros(row.micro_usd_per_hour);
                let change = SpotChange { key: key.clone(), at: from_unix_ms(row.effective_unix_ms)?, per_hour };
                known.insert(key, KnownSpot { change, read_at: from_unix_ms(row.read_unix_ms)? });
            }
        }
        Ok(known)
    }

    /// Keeps what was read at this time to be the prices in effect.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_spot_prices(&self, changes: &[SpotChange], at: Timestamp) -> Result<(), StoreError> {
        const DOING: &str = "keep Spot prices";
        let transaction = self.begin_write().await?;
        let key = [
            row::Column::Provider,
            row::Column::Account,
            row::Column::Zone,
            row::Column::InstanceType,
            row::Column::Product,
            row::Column::EffectiveUnixMs,
        ];
        for changes in changes.chunks(ROWS) {
            let rows = changes.iter().map(|change| row::ActiveModel {
                provider: Set(Provider::Aws.as_str().to_owned()),
                account: Set(change.key.account.clone()),
                zone: Set(change.key.zone.clone()),
                instance_type: Set(change.key.instance_type.clone()),
                product: Set(change.key.product.clone()),
                effective_unix_ms: Set(to_unix_ms(change.at)),
                read_unix_ms: Set(to_unix_ms(at)),
                micro_usd_per_hour: Set(change.per_hour.per_hour().micros()),
            });
            let again = OnConflict::columns(key)
                .update_columns([row::Column::ReadUnixMs, row::Column::MicroUsdPerHour])
                .to_owned();
            row::Entity::insert_many(rows)
                .on_conflict(again)
                .exec_without_returning(&transaction)
                .await
                .doing(DOING)?;
        }
        transaction.commit().await.doing(DOING)
    }
}
