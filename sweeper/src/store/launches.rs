//! Who started the machines and submitted the jobs that are listed, and how far each scope's trail was read.

use super::{Doing as _, Store, StoreError, from_unix_ms, place::place, to_unix_ms};
use crate::inventory::{Launched, LaunchedBy, Scope, Trail};
use model::{Provider, ResourceKey};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, Condition, EntityTrait as _, QueryFilter as _, sea_query::OnConflict,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Rows of one statement. SQLite takes 32,766 values in one, and a row has nine.
const ROWS: usize = 1_000;

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "launched")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub principal: Option<String>,
        pub via: Option<String>,
        pub launched_unix_ms: Option<i64>,
        pub event: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod trail {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "trails_read")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        pub from_unix_ms: i64,
        pub until_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// What says of which scope a row is.
const PLACE: [row::Column; 3] = [row::Column::Provider, row::Column::Account, row::Column::Region];

/// The same of a trail.
const TRAIL_PLACE: [trail::Column; 3] = [trail::Column::Provider, trail::Column::Account, trail::Column::Region];

/// What says of which scope and kind a row is.
fn of(scope: &Scope, what: Launched) -> Condition {
    place(PLACE, scope.words()).add(row::Column::Kind.eq(what.resource().as_str()))
}

impl Store {
    /// Who started the machines of a scope, or submitted its jobs, by their ids, and how much of its trail was read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn launches(
        &self,
        scope: &Scope,
        what: Launched,
    ) -> Result<(BTreeMap<String, LaunchedBy>, Option<Trail>), StoreError> {
        let rows = row::Entity::find().filter(of(scope, what)).all(self.connection()).await.doing("read launches")?;
        let mut launches = BTreeMap::new();
        for row in rows {
            let at = row.launched_unix_ms.map(from_unix_ms).transpose()?;
            let by = LaunchedBy { principal: row.principal, via: row.via, at, event: row.event };
            launches.insert(row.id, by);
        }
        let of_trail = place(TRAIL_PLACE, scope.words()).add(trail::Column::Kind.eq(what.resource().as_str()));
        let read = trail::Entity::find().filter(of_trail).one(self.connection());
        let read = read.await.doing("read how far a trail was read")?;
        let read = read.map(|row| {
            Ok::<_, StoreError>(Trail {
                from: from_unix_ms(row.from_unix_ms)?,
                until: from_unix_ms(row.until_unix_ms)?,
            })
        });
        Ok((launches, read.transpose()?))
    }

    /// Who started each machine, as far as any trail told, by the machine's key.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn launchers(&self) -> Result<HashMap<String, String>, StoreError> {
        let kind = Launched::Machine.resource();
        let rows = row::Entity::find()
            .filter(row::Column::Kind.eq(kind.as_str()))
            .filter(row::Column::Principal.is_not_null())
            .all(self.connection())
            .await
            .doing("read who started machines")?;
        let by_key = rows.into_iter().filter_map(|row| {
            let (provider, kind) = (Provider::from_word(&row.provider)?, Launched::Machine.resource());
            let key = ResourceKey { provider, account: row.account, location: row.region, kind, id: row.id };
            Some((key.to_string(), row.principal?))
        });
        Ok(by_key.collect())
    }

    /// Keeps what was found and how far was read, together, and forgets what is `gone`.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn put_launches(
        &self,
        scope: &Scope,
        what: Launched,
        found: &BTreeMap<String, LaunchedBy>,
        read: Trail,
        gone: &HashSet<String>,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let gone: Vec<&String> = gone.iter().collect();
        for gone in gone.chunks(ROWS) {
            row::Entity::delete_many()
                .filter(of(scope, what))
                .filter(row::Column::Id.is_in(gone.iter().copied()))
                .exec(&transaction)
                .await
                .doing("forget launches")?;
        }
        let rows: Vec<_> = found.iter().map(|(id, by)| to_row(scope, what, id, by)).collect();
        for rows in rows.chunks(ROWS) {
            row::Entity::insert_many(rows.iter().cloned())
                .on_conflict_do_nothing()
                .exec_without_returning(&transaction)
                .await
                .doing("keep launches")?;
        }
        let Scope { provider, account, region } = scope;
        let replace = OnConflict::columns(TRAIL_PLACE.into_iter().chain([trail::Column::Kind]))
            .update_columns([trail::Column::FromUnixMs, trail::Column::UntilUnixMs])
            .to_owned();
        trail::Entity::insert(trail::ActiveModel {
            provider: Set(provider.as_str().to_owned()),
            account: Set(account.clone()),
            region: Set(region.clone()),
            kind: Set(what.resource().as_str().to_owned()),
            from_unix_ms: Set(to_unix_ms(read.from)),
            until_unix_ms: Set(to_unix_ms(read.until)),
        })
        .on_conflict(replace)
        .exec_without_returning(&transaction)
        .await
        .doing("keep how far a trail was read")?;
        transaction.commit().await.doing("commit launches")
    }
}

fn to_row(scope: &Scope, what: Launched, id: &str, by: &LaunchedBy) -> row::ActiveModel {
    row::ActiveModel {
        provider: Set(scope.provider.as_str().to_owned()),
        account: Set(scope.account.clone()),
        region: Set(scope.region.clone()),
        kind: Set(what.resource().as_str().to_owned()),
        id: Set(id.to_owned()),
        principal: Set(by.principal.clone()),
        via: Set(by.via.clone()),
        launched_unix_ms: Set(by.at.map(to_unix_ms)),
        event: Set(by.event.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::Provider;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap_or_default()
    }

    #[tokio::test]
    async fn what_was_found_and_how_far_was_read_are_kept_together() {
        let store = Store::connect("sqlite::memory:").await.expect("a database");
        store.migrate().await.expect("a schema");
        let scope =
            |region: &str| Scope { provider: Provider::Aws, account: "123456789012".into(), region: region.into() };
        let by = |name: &str| LaunchedBy { principal: Some(name.into()), at: Some(at(1)), ..LaunchedBy::default() };
        let (here, there) = (scope("a"), scope("b"));
        assert_eq!(store.launches(&here, Launched::Machine).await.expect("read"), (BTreeMap::new(), None));

        let found = BTreeMap::from([("i-1".to_owned(), by("ada")), ("i-2".to_owned(), LaunchedBy::default())]);
        let first = Trail { from: at(0), until: at(10) };
        store.put_launches(&here, Launched::Machine, &found, first, &HashSet::new()).await.expect("kept");
        assert_eq!(store.launches(&here, Launched::Machine).await.expect("read"), (found, Some(first)));
        assert_eq!(
            store.launches(&there, Launched::Machine).await.expect("read"),
            (BTreeMap::new(), None),
            "another scope"
        );

        let again = BTreeMap::from([("i-1".to_owned(), by("eve")), ("i-3".to_owned(), by("bob"))]);
        let second = Trail { from: at(-5), until: at(20) };
        store.put_launches(&here, Launched::Machine, &again, second, &["i-2".to_owned()].into()).await.expect("kept");
        let left = BTreeMap::from([("i-1".to_owned(), by("ada")), ("i-3".to_owned(), by("bob"))]);
        let machines = (left, Some(second));
        assert_eq!(
            store.launches(&here, Launched::Machine).await.expect("read"),
            machines,
            "a machine is started once"
        );

        assert_eq!(store.launches(&here, Launched::Job).await.expect("read"), (BTreeMap::new(), None), "another kind");
        let jobs = BTreeMap::from([("i-1".to_owned(), by("head"))]);
        let all_machines = ["i-1".to_owned(), "i-3".to_owned()].into();
        store.put_launches(&here, Launched::Job, &jobs, first, &all_machines).await.expect("kept");
        assert_eq!(store.launches(&here, Launched::Job).await.expect("read"), (jobs, Some(first)));
        assert_eq!(
            store.launches(&here, Launched::Machine).await.expect("read"),
            machines,
            "what is gone is of its kind"
        );
    }
}
