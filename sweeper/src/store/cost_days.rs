//! What machines cost day by day, added up beforehand, and which nodes' days are to be added up anew.
//!
//! Triggers note the node and the day of each hour's rollup that is written or deleted (step `m0038_cost_days`), in the transaction that does so. Whoever adds a day up reads the notes
//! first, then the rollups, and writes what they come to only if the notes are the same by then, under their locks; with it the notes go. So what is kept and not noted is of
//! the rollups that are there. That the row is the same by then, too, is seen by its mark: somebody else may have written it, and taken away a note that was made and read in between.

use super::{
    Doing as _, Store, StoreError,
    commit::{execute, get, query},
    given::{Column, MAX_ROWS},
};
use costs::{Dimension, Packed, View};
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, QueryResult, Statement};
use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
};

/// Names, among PostgreSQL's advisory locks, the turn of whoever makes days ("costday" in ASCII), and the writing of one.
const TURN: i64 = 0x63_6f73_7464_6179;
const WRITING: i64 = TURN + 1;

/// A part of all machines on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DayPart {
    /// Counted from 1970-01-01, in UTC.
    pub day: i64,
    /// Which part.
    pub part: i64,
}

/// What is kept of a part's day, with what tells whether it is still that.
#[derive(Clone, Debug)]
pub struct CostDay {
    /// That of the view of runs.
    mark: i64,
    /// Both views.
    pub views: BTreeMap<View, Packed>,
}

/// By day the nodes of which a rollup was written or deleted since that was added up, each with the mark of the last such change.
pub type ChangedDays = HashMap<i64, BTreeMap<String, i64>>;

/// The turn of one replica to add days up; it ends with the value.
#[derive(Debug)]
pub struct CostDaysTurn(Option<DatabaseTransaction>);

impl CostDaysTurn {
    /// Ends it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn end(self) -> Result<(), StoreError> {
        match self.0 {
            Some(transaction) => transaction.rollback().await.doing("end the turn of adding costs up"),
            None => Ok(()),
        }
    }
}

impl Store {
    /// The turn to add days up; none while another replica has it. It keeps nobody from anything else, and nothing rests on it but that no work is done twice. SQLite
    /// has one process, and no turns.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn turn_of_cost_days(&self) -> Result<Option<CostDaysTurn>, StoreError> {
        let doing = "take the turn of adding costs up";
        if self.has_one_writer() {
            return Ok(Some(CostDaysTurn(None)));
        }
        let transaction = self.begin_write().await?;
        let lock =
            Statement::from_string(DbBackend::Postgres, format!("SELECT pg_try_advisory_xact_lock({TURN}) AS mine"));
        let mine = transaction.query_one_raw(lock).await.doing(doing)?;
        let mine = mine.map(|row| get(&row, "mine")).transpose()? == Some(true);
        Ok(mine.then_some(CostDaysTurn(Some(transaction))))
    }

    /// Of which nodes and days a rollup was written or deleted since what is kept of these days was added up.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn changed_cost_days(&self, days: RangeInclusive<i64>) -> Result<ChangedDays, StoreError> {
        let select = format!(
            "SELECT day, node_id, mark FROM cost_days_changed WHERE day BETWEEN {} AND {}",
            days.start(),
            days.end()
        );
        let mut changed = ChangedDays::new();
        for row in self.rows(select, "read which days of costs have changed").await? {
            changed.entry(get(&row, "day")?).or_default().insert(get(&row, "node_id")?, get(&row, "mark")?);
        }
        Ok(changed)
    }

    /// Whose days are kept of each part of a day.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn kept_cost_days(&self, day: i64) -> Result<BTreeMap<DayPart, Vec<u8>>, StoreError> {
        let view = View::Runs.as_str();
        let select = format!("SELECT part, machines FROM cost_days WHERE day = {day} AND view = '{view}'");
        let rows = self.rows(select, "read whose days of costs are kept").await?;
        rows.iter().map(|row| Ok((DayPart { day, part: get(row, "part")? }, get(row, "machines")?))).collect()
    }

    /// What is kept of a day in this view, part by part, with the texts of these dimensions.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn cost_days(&self, day: i64, view: View, dimensions: &[Dimension]) -> Result<Vec<Packed>, StoreError> {
        let select = format!(
            "SELECT {} FROM cost_days WHERE day = {day} AND view = '{}' ORDER BY part",
            columns_of(dimensions),
            view.as_str()
        );
        let rows = self.rows(select, "read days of costs").await?;
        rows.iter().map(|row| packed(row, dimensions)).collect()
    }

    /// What is kept of a part's day; none where nothing is.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn cost_day(&self, of: DayPart) -> Result<Option<CostDay>, StoreError> {
        let DayPart { day, part } = of;
        let mut kept: Option<CostDay> = None;
        for view in View::ALL {
            let dimensions = view.dimensions();
            let select = format!(
                "SELECT mark, {} FROM cost_days WHERE day = {day} AND part = {part} AND view = '{}'",
                columns_of(dimensions),
                view.as_str()
            );
            for row in self.rows(select, "read a day of costs").await? {
                // Both views are written together, and this one is read first.
                let mark = get(&row, "mark")?;
                let kept = kept.get_or_insert_with(|| CostDay { mark, views: BTreeMap::new() });
                kept.views.insert(view, packed(&row, dimensions)?);
            }
        }
        Ok(kept)
    }

    /// Keeps a part's day in both views, in the place of what was there, and takes the notes away that it is up to date with. Nothing is done, and false is the answer, if
    /// `before` is no longer what was there, or a node of these has another note than was read (`changed`) before its rollups were.
    ///
    /// # Errors
    /// If the database does not answer; nothing has changed then.
    pub async fn put_cost_day(
        &self,
        of: DayPart,
        views: &BTreeMap<View, Packed>,
        before: Option<&CostDay>,
        nodes: &[String],
        changed: &BTreeMap<String, i64>,
    ) -> Result<bool, StoreError> {
        let transaction = self.begin_write().await?;
        if !is_as_before(&transaction, of, before).await? || !is_unchanged(&transaction, of.day, nodes, changed).await?
        {
            return Ok(false);
        }
        for (view, packed) in views {
            put(&transaction, of, *view, packed).await?;
        }
        let body = "DELETE FROM cost_days_changed WHERE (day, node_id) IN (SELECT day, node_id FROM given)";
        for nodes in changed.keys().cloned().collect::<Vec<_>>().chunks(MAX_ROWS) {
            execute(&transaction, nodes_given(of.day, nodes), body, "take away which days of costs have changed")
                .await?;
        }
        transaction.commit().await.doing("commit a day of costs")?;
        Ok(true)
    }

    /// Forgets what is kept of earlier days, and what is noted of them; says how many rows are kept no more.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn forget_cost_days_before(&self, day: i64) -> Result<u64, StoreError> {
        let (doing, transaction) = ("forget days of costs", self.begin_write().await?);
        let forget = |table: &str| format!("DELETE FROM {table} WHERE day < {day}");
        let forgotten = transaction.execute_unprepared(&forget("cost_days")).await.doing(doing)?.rows_affected();
        transaction.execute_unprepared(&forget("cost_days_changed")).await.doing(doing)?;
        transaction.commit().await.doing(doing)?;
        Ok(forgotten)
    }

    async fn rows(&self, select: String, doing: &'static str) -> Result<Vec<QueryResult>, StoreError> {
        let statement = Statement::from_string(self.connection.get_database_backend(), select);
        self.connection.query_all_raw(statement).await.doing(doing)
    }
}

/// Whether nobody has written the row since; from here on nobody else does until the transaction ends.
async fn is_as_before(
    transaction: &DatabaseTransaction,
    DayPart { day, part }: DayPart,
    before: Option<&CostDay>,
) -> Result<bool, StoreError> {
    let (backend, doing) = (transaction.get_database_backend(), "see whether a day of costs is as before");
    if backend == DbBackend::Postgres {
        let lock = format!("SELECT pg_advisory_xact_lock({WRITING})");
        transaction.execute_unprepared(&lock).await.doing(doing)?;
    }
    let view = View::Runs.as_str();
    let select = format!("SELECT mark FROM cost_days WHERE day = {day} AND part = {part} AND view = '{view}'");
    let row = transaction.query_one_raw(Statement::from_string(backend, select)).await.doing(doing)?;
    let mark: Option<i64> = row.map(|row| get(&row, "mark")).transpose()?;
    Ok(mark == before.map(|before| before.mark))
}

/// Whether these nodes' notes of a day are those that were read. They are locked until the transaction ends; who is about to make another one makes it afterwards.
async fn is_unchanged(
    transaction: &DatabaseTransaction,
    day: i64,
    nodes: &[String],
    changed: &BTreeMap<String, i64>,
) -> Result<bool, StoreError> {
    let lock = if transaction.get_database_backend() == DbBackend::Postgres {
        "ORDER BY cost_days_changed.node_id FOR UPDATE OF cost_days_changed"
    } else {
        ""
    };
    let body = format!(
        "SELECT cost_days_changed.node_id AS node_id, mark FROM given JOIN cost_days_changed \
         ON cost_days_changed.day = given.day AND cost_days_changed.node_id = given.node_id {lock}"
    );
    let mut all: Vec<String> = nodes.iter().chain(changed.keys()).cloned().collect();
    all.sort();
    all.dedup();
    let mut found = BTreeMap::new();
    for nodes in all.chunks(MAX_ROWS) {
        for row in query(transaction, nodes_given(day, nodes), &body, "read which days of costs have changed").await? {
            found.insert(get::<String>(&row, "node_id")?, get::<i64>(&row, "mark")?);
        }
    }
    Ok(found == *changed)
}

async fn put(
    transaction: &DatabaseTransaction,
    DayPart { day, part }: DayPart,
    view: View,
    packed: &Packed,
) -> Result<(), StoreError> {
    let names: Vec<&str> = view.dimensions().iter().map(|dimension| dimension.as_str()).collect();
    let mark = if transaction.get_database_backend() == DbBackend::Postgres { "txid_current()" } else { "random()" };
    let all = ["machines", "amounts"].iter().chain(&names).copied().collect::<Vec<_>>();
    let renewed: Vec<String> = all.iter().chain(&["mark"]).map(|name| format!("{name} = excluded.{name}")).collect();
    let body = format!(
        "INSERT INTO cost_days (day, part, view, mark, {names}) SELECT day, part, view, {mark}, {names} FROM given WHERE true \
         ON CONFLICT (day, part, view) DO UPDATE SET {renewed}",
        names = all.join(", "),
        renewed = renewed.join(", "),
    );
    let one = |bytes: &[u8]| Column::Bytes(vec![bytes.to_vec()]);
    let mut columns = vec![
        ("day", Column::Integer(vec![day])),
        ("part", Column::Integer(vec![part])),
        ("view", Column::Text(vec![view.as_str().to_owned()])),
        ("machines", one(&packed.machines)),
        ("amounts", one(&packed.amounts)),
    ];
    for dimension in view.dimensions() {
        let texts = packed.texts.get(dimension).map_or(&[][..], Vec::as_slice);
        columns.push((dimension.as_str(), one(texts)));
    }
    execute(transaction, columns, &body, "keep a day of costs").await
}

fn nodes_given(day: i64, nodes: &[String]) -> Vec<(&'static str, Column)> {
    vec![("day", Column::Integer(vec![day; nodes.len()])), ("node_id", Column::Text(nodes.to_vec()))]
}

fn columns_of(dimensions: &[Dimension]) -> String {
    let texts = dimensions.iter().map(|dimension| dimension.as_str());
    ["machines", "amounts"].into_iter().chain(texts).collect::<Vec<_>>().join(", ")
}

fn packed(row: &QueryResult, dimensions: &[Dimension]) -> Result<Packed, StoreError> {
    let mut texts = BTreeMap::new();
    for dimension in dimensions {
        if let Some(packed) = get(row, dimension.as_str())? {
            texts.insert(*dimension, packed);
        }
    }
    Ok(Packed { machines: get(row, "machines")?, amounts: get(row, "amounts")?, texts })
}
