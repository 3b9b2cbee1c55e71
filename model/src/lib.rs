//! What everything on the sweeper's side shares: which resource is meant, what is thought of it, what it costs, what would be done to it.
//!
//! Pure: no input or output, no clock.

pub mod address;
mod canonical;
pub mod group;
pub mod job;
pub mod machine;
pub mod money;
pub mod plan;
mod provider;
mod resource;
mod unit_price;
mod verdict;
pub mod volume;

pub use money::{HOURS_PER_MONTH, HourlyRate, Sum, Usd};
pub use provider::Provider;
pub use resource::{NotAKey, ResourceKey, ResourceKind};
pub use unit_price::{Quantity, UnitPrice};
pub use verdict::Verdict;
