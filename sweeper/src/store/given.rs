//! Statements over many rows at once, the same on both databases: `WITH given(…) AS (…) …`.
//!
//! PostgreSQL is handed one array a column, so that a statement's text, and with it its plan, is the same for one row as for a thousand. SQLite, which
//! has no arrays, is handed the rows one by one; it sits in the same process.

use sea_orm::{DbBackend, Statement, Value, sea_query::ArrayType};
use std::fmt::Write as _;

/// Most rows of one statement: SQLite binds at most 32,766 values, and none of these statements has more than 17 columns.
pub(super) const MAX_ROWS: usize = 1_000;

/// One column of the rows that a statement is given. No value is absent: a statement says by `NULLIF` what stands for that.
#[derive(Debug)]
pub(super) enum Column {
    Text(Vec<String>),
    Integer(Vec<i64>),
    Bytes(Vec<Vec<u8>>),
}

impl Column {
    fn sql_type(&self) -> &'static str {
        match self {
            Self::Text(_) => "text[]",
            Self::Integer(_) => "bigint[]",
            Self::Bytes(_) => "bytea[]",
        }
    }

    fn values(self) -> (ArrayType, Vec<Value>) {
        match self {
            Self::Text(values) => (ArrayType::String, values.into_iter().map(Value::from).collect()),
            Self::Integer(values) => (ArrayType::BigInt, values.into_iter().map(Value::from).collect()),
            Self::Bytes(values) => (ArrayType::Bytes, values.into_iter().map(Value::from).collect()),
        }
    }
}

/// A statement that reads the rows `given`, which are these columns, all of one length, from 1 to [`MAX_ROWS`].
pub(super) fn statement(backend: DbBackend, columns: Vec<(&'static str, Column)>, body: &str) -> Statement {
    let names = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let mut sql = format!("WITH given({names}) AS (");
    let values: Vec<Value> = if backend == DbBackend::Postgres {
        let arrays = columns.iter().enumerate().map(|(at, (_, column))| format!("${}::{}", at + 1, column.sql_type()));
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        let _ = write!(sql, "SELECT * FROM UNNEST({arrays})");
        columns
            .into_iter()
            .map(|(_, column)| {
                let (kind, values) = column.values();
                Value::Array(kind, Some(Box::new(values)))
            })
            .collect()
    } else {
        let row = format!("({})", vec!["?"; columns.len()].join(", "));
        let mut columns: Vec<_> = columns.into_iter().map(|(_, column)| column.values().1.into_iter()).collect();
        let rows = columns.first().map_or(0, ExactSizeIterator::len);
        let _ = write!(sql, "VALUES {}", vec![row; rows].join(", "));
        (0..rows).flat_map(|_| columns.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
    };
    let _ = write!(sql, ") {body}");
    Statement::from_sql_and_values(backend, sql, values)
}
