//! What was measured and what was not: one verdict per probe, with its reason. *Not measured* is never *zero*.

use heartbeat::wire::{self, ProbeStatus};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io};

/// The state of one probe.
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
    /// What an I/O error says about a probe.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied { Self::Denied } else { Self::Broken }
    }

    const fn on_the_wire(self) -> ProbeStatus {
        match self {
            Self::Ok => ProbeStatus::Ok,
            Self::Unsupported => ProbeStatus::Unsupported,
            Self::Denied => ProbeStatus::Denied,
            Self::Broken => ProbeStatus::Broken,
            Self::NotApplicable => ProbeStatus::NotApplicable,
        }
    }
}

/// All probes, by name; the last word on a probe counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes(BTreeMap<&'static str, (Status, String)>);

impl Probes {
    /// The probe measures.
    pub fn ok(&mut self, name: &'static str) {
        self.0.insert(name, (Status::Ok, String::new()));
    }

    /// The probe is in a state that has a reason.
    pub fn set(&mut self, name: &'static str, status: Status, reason: impl Into<String>) {
        let mut reason: String = reason.into();
        // The contract refuses longer texts; a kernel's verifier can be wordy.
        if reason.len() > heartbeat::envelope::MAX_NAME_BYTES {
            let end = (0..=heartbeat::envelope::MAX_NAME_BYTES).rev().find(|end| reason.is_char_boundary(*end));
            reason.truncate(end.unwrap_or(0));
        }
        self.0.insert(name, (status, reason));
    }

    /// The state of a probe, if it has been looked at.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<Status> {
        self.0.get(name).map(|(status, _)| *status)
    }

    /// As the contract has it, by name.
    #[must_use]
    pub fn to_wire(&self) -> Vec<wire::Probe> {
        self.0
            .iter()
            .map(|(name, (status, reason))| wire::Probe {
                name: (*name).to_owned(),
                status: status.on_the_wire().into(),
                reason: reason.clone(),
            })
            .collect()
    }
}
