//! What was measured and what was not: one verdict per capability, with its reason. *Not measured* is never *zero*.

use heartbeat::wire::{self, CapabilityStatus};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io};

/// The state of one capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Measured.
    Ok,
    /// This kernel cannot.
    Unsupported,
    /// The kernel could, the agent may not.
    Denied,
    /// It should work and does not.
    Broken,
    /// There is nothing to measure here.
    NotApplicable,
}

impl Status {
    /// What an I/O error says about a capability.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied { Self::Denied } else { Self::Broken }
    }

    const fn on_the_wire(self) -> CapabilityStatus {
        match self {
            Self::Ok => CapabilityStatus::Ok,
            Self::Unsupported => CapabilityStatus::Unsupported,
            Self::Denied => CapabilityStatus::Denied,
            Self::Broken => CapabilityStatus::Broken,
            Self::NotApplicable => CapabilityStatus::NotApplicable,
        }
    }
}

/// All capabilities, by name; the last word on a capability counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeMap<&'static str, (Status, String)>);

impl Capabilities {
    /// The capability measures.
    pub fn ok(&mut self, name: &'static str) {
        self.0.insert(name, (Status::Ok, String::new()));
    }

    /// The capability is in a state that has a reason.
    pub fn set(&mut self, name: &'static str, status: Status, reason: impl Into<String>) {
        let mut reason: String = reason.into();
        // The contract refuses longer texts; a kernel's verifier can be wordy.
        if reason.len() > heartbeat::envelope::MAX_NAME_BYTES {
            let end = (0..=heartbeat::envelope::MAX_NAME_BYTES).rev().find(|end| reason.is_char_boundary(*end));
            reason.truncate(end.unwrap_or(0));
        }
        self.0.insert(name, (status, reason));
    }

    /// The state of a capability, if it has been looked at.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<Status> {
        self.0.get(name).map(|(status, _)| *status)
    }

    /// As the contract has it, by name.
    #[must_use]
    pub fn to_wire(&self) -> Vec<wire::Capability> {
        self.0
            .iter()
            .map(|(name, (status, reason))| wire::Capability {
                name: (*name).to_owned(),
                status: status.on_the_wire().into(),
                reason: reason.clone(),
            })
            .collect()
    }
}
