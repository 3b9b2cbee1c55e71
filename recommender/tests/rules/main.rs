//! The rules that recommend: cases computed by hand, and what holds of all cases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod architecture;
mod batch;
mod burstable;
mod observed;
mod properties;
mod rank;
mod region;
mod rightsize;
mod schedule;
mod spot;
mod support;
mod task;
