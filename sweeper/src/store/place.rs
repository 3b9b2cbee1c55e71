//! Which rows of a table are of one place: account and region, and whose they are.

use sea_orm::{ColumnTrait, Condition};

/// The rows whose provider, account and region, in these columns, are these words.
pub(super) fn place<C: ColumnTrait>(columns: [C; 3], (provider, account, region): (&str, &str, &str)) -> Condition {
    let of_place = columns.into_iter().zip([provider, account, region]);
    of_place.fold(Condition::all(), |all, (column, word)| all.add(column.eq(word)))
}
