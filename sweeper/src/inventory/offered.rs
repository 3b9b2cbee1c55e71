//! What a region offers an account: types of machines, and in which zones each may be had.

use recommender::catalogue::MachineType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a region offers an account on demand, as the provider says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// All types that the region offers.
    pub types: Vec<OfferedType>,
    /// The names of the types that each zone offers.
    pub zones: BTreeMap<String, BTreeSet<String>>,
}

/// A type of machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedType {
    /// What it can do.
    pub machine_type: MachineType,
    /// In which ways it boots, in the provider's words; none if it did not say.
    pub boot_modes: Option<BTreeSet<String>>,
}

impl OfferedType {
    /// Whether each system that boots on the other one boots on this one. Not known: it may not.
    #[must_use]
    pub fn boots_all_of(&self, other: &Self) -> bool {
        match (&self.boot_modes, &other.boot_modes) {
            (Some(own), Some(others)) => others.is_subset(own),
            _ => false,
        }
    }
}
