//! Whose work it is: pure functions over names, users and cgroup paths, and the rows that add up over time.
//!
//! A workload is known by its cgroup path. On a host without systemd and containers that is `/`, one row for each class.
//! What the path means, and who is housekeeping, is said by rules: the crate `workload-rules`.

pub mod activity;
pub mod attribute;
pub mod classify;
pub mod engines;
pub mod residue;
pub mod rows;
pub mod runs;

pub use activity::Activity;
pub use attribute::{Attributed, Name, Names, attribute};
pub use classify::{Class, Origin, Traits, classify};
pub use rows::{OVERFLOW, Row, Rows, row_key};
