//! Prices per unit as they were read from a price list, each from when on.

use super::{Doing as _, KnownPrice, Store, StoreError, from_unix_ms, to_unix_ms};
use crate::pricing::{UnitKey, Usage};
use jiff::Timestamp;
use model::{Provider, UnitPrice};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "unit_prices")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub source: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub usage_type: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub effective_unix_ms: i64,
        pub read_unix_ms: i64,
        pub ten_billionths_usd: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

impl Store {
    /// The prices that this price list last had for these keys, as far as they were ever read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn unit_prices(
        &self,
        source: &str,
        keys: &BTreeSet<UnitKey>,
    ) -> Result<HashMap<UnitKey, KnownPrice<UnitPrice>>, StoreError> {
        prices(self.connection(), source, keys).await
    }

    /// The price that each key of this list last had.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn all_unit_prices(&self, source: &str) -> Result<BTreeMap<UnitKey, KnownPrice<UnitPrice>>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::Source.eq(source))
            .order_by_asc(row::Column::EffectiveUnixMs)
            .all(self.connection())
            .await
            .doing("read all prices per unit")?;
        // Of several prices the one that is in effect last stays.
        rows.into_iter().filter_map(|row| known(row).transpose()).collect()
    }

    /// Keeps what was read at this time: a price that is another one than before is in effect from then on.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_unit_prices(
        &self,
        source: &str,
        read: &BTreeMap<UnitKey, UnitPrice>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let known = prices(&transaction, source, &read.keys().cloned().collect()).await?;
        for (key, price) in read {
            match known.get(key).filter(|known| known.price == *price) {
                Some(known) => {
                    let update = row::ActiveModel { read_unix_ms: Set(to_unix_ms(at)), ..Default::default() };
                    row::Entity::update_many()
                        .set(update)
                        .filter(is_of(source, key))
                        .filter(row::Column::EffectiveUnixMs.eq(to_unix_ms(known.effective_from)))
                        .exec(&transaction)
                        .await
                        .doing("keep that a price per unit is still so")?;
                }
                None => {
                    row::Entity::insert(row::ActiveModel {
                        source: Set(source.to_owned()),
                        provider: Set(key.provider.as_str().to_owned()),
                        region: Set(key.region.clone()),
                        usage_type: Set(key.usage.usage_type().to_owned()),
                        effective_unix_ms: Set(to_unix_ms(at)),
                        read_unix_ms: Set(to_unix_ms(at)),
                        ten_billionths_usd: Set(price.ten_billionths()),
                    })
                    .on_conflict_do_nothing()
                    .exec_without_returning(&transaction)
                    .await
                    .doing("keep a price per unit")?;
                }
            }
        }
        transaction.commit().await.doing("commit prices per unit")
    }
}

async fn prices(
    connection: &impl ConnectionTrait,
    source: &str,
    keys: &BTreeSet<UnitKey>,
) -> Result<HashMap<UnitKey, KnownPrice<UnitPrice>>, StoreError> {
    let regions: BTreeSet<&str> = keys.iter().map(|key| key.region.as_str()).collect();
    let rows = row::Entity::find()
        .filter(row::Column::Source.eq(source))
        .filter(row::Column::Region.is_in(regions))
        .order_by_asc(row::Column::EffectiveUnixMs)
        .all(connection)
        .await
        .doing("read the prices per unit")?;
    let mut latest = HashMap::new();
    for row in rows {
        // Of several prices the one that is in effect last stays.
        latest.extend(known(row)?.filter(|(key, _)| keys.contains(key)));
    }
    Ok(latest)
}

/// None of what a later version knows: it is nobody's key here.
fn known(row: row::Model) -> Result<Option<(UnitKey, KnownPrice<UnitPrice>)>, StoreError> {
    let price = KnownPrice {
        price: UnitPrice::from_ten_billionths(row.ten_billionths_usd),
        effective_from: from_unix_ms(row.effective_unix_ms)?,
        read_at: from_unix_ms(row.read_unix_ms)?,
    };
    Ok(key_of(row).map(|key| (key, price)))
}

fn is_of(source: &str, key: &UnitKey) -> Condition {
    Condition::all()
        .add(row::Column::Source.eq(source))
        .add(row::Column::Provider.eq(key.provider.as_str()))
        .add(row::Column::Region.eq(&key.region))
        .add(row::Column::UsageType.eq(key.usage.usage_type()))
}

fn key_of(row: row::Model) -> Option<UnitKey> {
    let provider = Provider::from_word(&row.provider)?;
    Some(UnitKey { provider, region: row.region, usage: Usage::from_usage_type(&row.usage_type)? })
}
