//! What providers answered when they were asked how busy machines were: kept, since each question costs money.

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms, place::place, to_unix_ms};
use crate::inventory::{Scope, Usage, UsageAnswer, UsageSource};
use jiff::Timestamp;
use model::ResourceKind;
use sea_orm::{ActiveValue::Set, ColumnTrait as _, EntityTrait as _, QueryFilter as _, sea_query::OnConflict};

/// Rows of one statement. SQLite takes 32,766 values in one, and a row has twelve.
const ROWS: usize = 1_000;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "usage_answers")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub instance: String,
        pub asked_unix_ms: i64,
        pub source: String,
        pub from_unix_ms: Option<i64>,
        pub until_unix_ms: Option<i64>,
        pub period_s: Option<i64>,
        pub periods: Option<i64>,
        pub busiest_cpu_millionths: Option<i64>,
        pub busiest_network_bytes_per_s: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// What says of which scope a row is.
const PLACE: [row::Column; 3] = [row::Column::Provider, row::Column::Account, row::Column::Region];

impl Store {
    /// What is kept of a scope and was asked after this moment.
    ///
    /// # Errors
    /// If the database does not answer or holds an answer of another version.
    pub async fn usage_answers(&self, scope: &Scope, asked_after: Timestamp) -> Result<Vec<UsageAnswer>, StoreError> {
        let rows = row::Entity::find()
            .filter(place(PLACE, scope.words()))
            .filter(row::Column::AskedUnixMs.gt(to_unix_ms(asked_after)))
            .all(self.connection())
            .await
            .doing("read what providers measured")?;
        rows.into_iter().map(|row| from_row(scope, row)).collect()
    }

    /// Keeps answers about machines of a scope in the place of earlier ones, and forgets those that were asked before `forget`.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_usage_answers(
        &self,
        scope: &Scope,
        answers: &[UsageAnswer],
        forget: Timestamp,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        row::Entity::delete_many()
            .filter(place(PLACE, scope.words()))
            .filter(row::Column::AskedUnixMs.lt(to_unix_ms(forget)))
            .exec(&transaction)
            .await
            .doing("forget what providers measured")?;
        for answers in answers.chunks(ROWS) {
            let replace = OnConflict::columns([PLACE.as_slice(), &[row::Column::Instance]].concat())
                .update_columns([
                    row::Column::AskedUnixMs,
                    row::Column::Source,
                    row::Column::FromUnixMs,
                    row::Column::UntilUnixMs,
                    row::Column::PeriodS,
                    row::Column::Periods,
                    row::Column::BusiestCpuMillionths,
                    row::Column::BusiestNetworkBytesPerS,
                ])
                .to_owned();
            row::Entity::insert_many(answers.iter().map(to_row))
                .on_conflict(replace)
                .exec_without_returning(&transaction)
                .await
                .doing("keep what providers measured")?;
        }
        transaction.commit().await.doing("commit what providers measured")
    }
}

fn to_row(answer: &UsageAnswer) -> row::ActiveModel {
    let usage = answer.usage.as_ref();
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    row::ActiveModel {
        provider: Set(answer.id.provider.as_str().to_owned()),
        account: Set(answer.id.account.clone()),
        region: Set(answer.id.location.clone()),
        instance: Set(answer.id.id.clone()),
        asked_unix_ms: Set(to_unix_ms(answer.asked_at)),
        source: Set(answer.source.as_str().to_owned()),
        from_unix_ms: Set(usage.map(|usage| to_unix_ms(usage.from))),
        until_unix_ms: Set(usage.map(|usage| to_unix_ms(usage.until))),
        period_s: Set(usage.map(|usage| usage.period_s.into())),
        periods: Set(usage.map(|usage| usage.periods.into())),
        busiest_cpu_millionths: Set(usage.and_then(|usage| usage.busiest_cpu_millionths.map(Into::into))),
        busiest_network_bytes_per_s: Set(usage.and_then(|usage| usage.busiest_network_bytes_per_s.map(bytes))),
    }
}

fn from_row(scope: &Scope, row: row::Model) -> Result<UsageAnswer, StoreError> {
    let unreadable = |what: String| corrupt(format!("what a provider measured of {}", row.instance), what);
    let id = scope.key(ResourceKind::Instance, &row.instance);
    let source = UsageSource::from_word(&row.source).ok_or_else(|| unreadable(format!("source `{}`", row.source)))?;
    let whole = |value: i64| u32::try_from(value).map_err(|error| unreadable(error.to_string()));
    let usage = match (row.from_unix_ms, row.until_unix_ms, row.period_s, row.periods) {
        (Some(from), Some(until), Some(period_s), Some(periods)) => Some(Usage {
            id: id.clone(),
            source,
            from: from_unix_ms(from)?,
            until: from_unix_ms(until)?,
            period_s: whole(period_s)?,
            periods: whole(periods)?,
            busiest_cpu_millionths: row.busiest_cpu_millionths.map(whole).transpose()?,
            busiest_network_bytes_per_s: row.busiest_network_bytes_per_s.map(i64::unsigned_abs),
        }),
        _ => None,
    };
    Ok(UsageAnswer { id, source, asked_at: from_unix_ms(row.asked_unix_ms)?, usage })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Provider;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
    }

    fn scope(region: &str) -> Scope {
        Scope { provider: Provider::Aws, account: "123456789012".into(), region: region.into() }
    }

    fn answer(id: &str, asked: i64, cpu: Option<u32>) -> UsageAnswer {
        let id = scope("a").key(ResourceKind::Instance, id);
        let source = UsageSource::CloudWatch;
        let usage = Usage {
            id: id.clone(),
            source,
            from: at(0),
            until: at(7_200),
            period_s: 3_600,
            periods: 2,
            busiest_cpu_millionths: cpu,
            busiest_network_bytes_per_s: Some(u64::from(u32::MAX) + 1),
        };
        UsageAnswer { id, source, asked_at: at(asked), usage: cpu.map(|_| usage) }
    }

    #[tokio::test]
    async fn what_was_answered_comes_back_as_it_was_and_nothing_measured_stays_nothing() {
        let store = Store::connect("sqlite::memory:").await.expect("a database");
        store.migrate().await.expect("a schema");
        let (first, second) = (answer("i-1", 10, Some(7)), answer("i-2", 10, None));
        store.put_usage_answers(&scope("a"), &[first.clone(), second.clone()], at(0)).await.expect("kept");
        assert_eq!(store.usage_answers(&scope("a"), at(9)).await.expect("read"), [first.clone(), second]);
        assert_eq!(store.usage_answers(&scope("a"), at(10)).await.expect("read"), [], "asked too long ago");
        assert_eq!(store.usage_answers(&scope("b"), at(0)).await.expect("read"), [], "another scope");

        let newer = answer("i-2", 20, Some(9));
        store.put_usage_answers(&scope("a"), std::slice::from_ref(&newer), at(11)).await.expect("kept");
        assert_eq!(store.usage_answers(&scope("a"), at(0)).await.expect("read"), [newer], "the older is forgotten");
    }
}
