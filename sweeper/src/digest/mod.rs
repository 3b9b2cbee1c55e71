//! Digests: summaries by mail, each day or each week by the clock of their readers.
//!
//! [`Facts`] are read from the store once for all lists; [`make()`] turns them into the digest of one list and is pure, as is the `calendar`. [`Sender`] writes
//! each one when it is due and sends it; `links` is how a reader stops it.

mod calendar;
mod facts;
mod links;
mod make;
mod send;

pub use calendar::{Calendar, day_before, week_before};
pub use facts::Facts;
pub use links::{Links, LinksError, UNSUBSCRIBE_PATH};
pub use make::{Span, make};
pub use send::{DigestError, Mailed, Sender};
