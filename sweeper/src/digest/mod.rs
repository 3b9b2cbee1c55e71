//! Digests: summaries by mail, each day or each week by the clock of their readers.
//!
//! [`Facts`] are read from the store once for all lists; [`make()`] turns them into the digest of one list and is pure, as is the `calendar`.

mod calendar;
mod facts;
mod make;

pub use calendar::{Calendar, day_before, week_before};
pub use facts::Facts;
pub use make::{Span, make};
