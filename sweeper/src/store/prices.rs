//! Prices as they were read from a price list, each from when on.

use super::{Doing as _, Store, StoreError, from_unix_ms, to_unix_ms};
use crate::pricing::{PriceKey, ReadPrice};
use jiff::Timestamp;
use model::HourlyRate;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "prices")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub source: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub instance_type: String,
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
        #[sea_orm(primary_key, auto_increment = false)]
        pub effective_unix_ms: i64,
        pub read_unix_ms: i64,
        pub micro_usd_per_hour: i64,
        pub source_rows: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A price, as it was last read: of an hour of a machine, or of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPrice<P = HourlyRate> {
    /// The on-demand list price.
    pub price: P,
    /// Since when it has been read so.
    pub effective_from: Timestamp,
    /// When it was last read so.
    pub read_at: Timestamp,
}

/// A price with what says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPrice {
    /// Whose.
    pub key: PriceKey,
    /// The price, and when it was read.
    pub known: KnownPrice,
    /// The rows of the list that it rests on, in the list's own words; none of what was read before they were kept.
    pub source_rows: Option<String>,
}

impl Store {
    /// The prices that this price list last had for these keys, as far as they were ever read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn prices(
        &self,
        source: &str,
        keys: &BTreeSet<PriceKey>,
    ) -> Result<HashMap<PriceKey, KnownPrice>, StoreError> {
        prices(self.connection(), source, keys).await
    }

    /// All prices that this price list ever had, of each key in the order in which they came into effect.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn price_history(&self, source: &str) -> Result<HashMap<PriceKey, Vec<KnownPrice>>, StoreError> {
        let mut history = HashMap::<PriceKey, Vec<KnownPrice>>::new();
        for KeptPrice { key, known, .. } in self.kept_prices(source).await? {
            history.entry(key).or_default().push(known);
        }
        Ok(history)
    }

    /// All prices that this price list ever had with what says each, in the order in which they came into effect.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn kept_prices(&self, source: &str) -> Result<Vec<KeptPrice>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::Source.eq(source))
            .order_by_asc(row::Column::EffectiveUnixMs)
            .all(self.connection())
            .await
            .doing("read all prices")?;
        let mut kept = Vec::with_capacity(rows.len());
        for mut row in rows {
            let (known, source_rows) = (known(&row)?, row.source_rows.take());
            // A provider of a later version is nobody's key here.
            kept.extend(key_of(row).map(|key| KeptPrice { key, known, source_rows }));
        }
        Ok(kept)
    }

    /// Keeps what was read at this time: a price that is another one than before is in effect from then on.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_prices(
        &self,
        source: &str,
        read: &BTreeMap<PriceKey, ReadPrice>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let known = prices(&transaction, source, &read.keys().cloned().collect()).await?;
        for (key, price) in read {
            match known.get(key).filter(|known| known.price == price.per_hour) {
                Some(known) => {
                    let update = row::ActiveModel {
                        read_unix_ms: Set(to_unix_ms(at)),
                        source_rows: Set(Some(price.source_rows.clone())),
                        ..Default::default()
                    };
                    row::Entity::update_many()
                        .set(update)
                        .filter(is_of(source, key))
                        .filter(row::Column::EffectiveUnixMs.eq(to_unix_ms(known.effective_from)))
                        .exec(&transaction)
                        .await
                        .doing("keep that a price is still so")?;
                }
                None => {
                    row::Entity::insert(to_row(source, key, price, at))
                        .on_conflict_do_nothing()
                        .exec_without_returning(&transaction)
                        .await
                        .doing("keep a price")?;
                }
            }
        }
        transaction.commit().await.doing("commit prices")
    }
}

async fn prices(
    connection: &impl ConnectionTrait,
    source: &str,
    keys: &BTreeSet<PriceKey>,
) -> Result<HashMap<PriceKey, KnownPrice>, StoreError> {
    // A region's lists have some 900 types each; a sweep asks for those that run there.
    let of = |part: fn(&PriceKey) -> &str| -> BTreeSet<&str> { keys.iter().map(part).collect() };
    let rows = row::Entity::find()
        .filter(row::Column::Source.eq(source))
        .filter(row::Column::Provider.is_in(of(|key| key.provider.as_str())))
        .filter(row::Column::Region.is_in(of(|key| &key.region)))
        .filter(row::Column::InstanceType.is_in(of(|key| &key.instance_type)))
        .order_by_asc(row::Column::EffectiveUnixMs)
        .all(connection)
        .await
        .doing("read the prices")?;
    let mut latest = HashMap::new();
    for row in rows {
        let price = known(&row)?;
        // A provider of a later version is nobody's key here. Of several prices the one that is in effect last stays.
        if let Some(key) = key_of(row).filter(|key| keys.contains(key)) {
            latest.insert(key, price);
        }
    }
    Ok(latest)
}

fn known(row: &row::Model) -> Result<KnownPrice, StoreError> {
    Ok(KnownPrice {
        price: HourlyRate::from_micros(row.micro_usd_per_hour),
        effective_from: from_unix_ms(row.effective_unix_ms)?,
        read_at: from_unix_ms(row.read_unix_ms)?,
    })
}

fn is_of(source: &str, key: &PriceKey) -> Condition {
    Condition::all()
        .add(row::Column::Source.eq(source))
        .add(row::Column::Provider.eq(key.provider.as_str()))
        .add(row::Column::Region.eq(&key.region))
        .add(row::Column::InstanceType.eq(&key.instance_type))
        .add(row::Column::OperatingSystem.eq(&key.operating_system))
        .add(row::Column::Tenancy.eq(&key.tenancy))
        .add(row::Column::LicenseModel.eq(&key.license_model))
        .add(row::Column::PreinstalledSoftware.eq(&key.preinstalled_software))
        .add(row::Column::CapacityStatus.eq(&key.capacity_status))
}

fn to_row(source: &str, key: &PriceKey, price: &ReadPrice, at: Timestamp) -> row::ActiveModel {
    let PriceKey {
        provider,
        region,
        instance_type,
        operating_system,
        tenancy,
        license_model,
        preinstalled_software,
        capacity_status,
    } = key.clone();
    row::ActiveModel {
        source: Set(source.to_owned()),
        provider: Set(provider.as_str().to_owned()),
        region: Set(region),
        instance_type: Set(instance_type),
        operating_system: Set(operating_system),
        tenancy: Set(tenancy),
        license_model: Set(license_model),
        preinstalled_software: Set(preinstalled_software),
        capacity_status: Set(capacity_status),
        effective_unix_ms: Set(to_unix_ms(at)),
        read_unix_ms: Set(to_unix_ms(at)),
        micro_usd_per_hour: Set(price.per_hour.per_hour().micros()),
        source_rows: Set(Some(price.source_rows.clone())),
    }
}

fn key_of(row: row::Model) -> Option<PriceKey> {
    Some(PriceKey {
        provider: model::Provider::from_word(&row.provider)?,
        region: row.region,
        instance_type: row.instance_type,
        operating_system: row.operating_system,
        tenancy: row.tenancy,
        license_model: row.license_model,
        preinstalled_software: row.preinstalled_software,
        capacity_status: row.capacity_status,
    })
}
