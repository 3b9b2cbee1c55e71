//! Whose work it is: pure functions over names, users and cgroup paths, and the rows that add up over time.
//!
//! A workload is named by its cgroup path. On a host without systemd and containers that is `/`, one row for each class.

pub mod classify;
pub mod rows;
pub mod rules;

pub use classify::{Class, Traits, classify};
pub use rows::{Row, Rows};
