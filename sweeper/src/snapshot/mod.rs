//! What one sweep of one work unit knows, at one moment: what detectors decide from, and all that they decide from. Pure.
//!
//! A part that could not be read is there as its failure: in the inventory's listings, in the [coverage](Coverage) of each machine, in
//! [`Inputs::failed`], and as the reason why a price is not known. Each fact stands beside the policy that it is held against, so that whatever is decided
//! from it can be decided again.

mod machine;
mod metrics;

pub use machine::{Coverage, Inputs, Machine, Presence, ProviderFacts, SnapshotPart, Subject, join};
pub use metrics::{QuietCase, QuietPolicy, Seen};

use crate::{inventory::Inventory, pricing::UnitPrices};
use jiff::Timestamp;

/// Everything that one sweep of one work unit knows.
#[derive(Debug)]
pub struct Snapshot {
    /// As of when.
    pub at: Timestamp,
    /// What providers list, jobs and leftovers among it, and what they refused to.
    pub inventory: Inventory,
    /// Its machines joined with their nodes, each judged and priced, in the order of their keys.
    pub machines: Vec<Machine>,
    /// Prices of what is billed by its amount, or why they are not known.
    pub prices: UnitPrices,
}
