//! Detectors: for each class of waste a pure function from what one sweep knows of a machine to a [`Detection`].
//!
//! What all of them have in common is decided here: a machine that is not there, or that does not run, is no waste of any class, and where a part
//! that a detector rests on could not be read, nothing is confirmed: the answer is *not known*, unless what was read refutes it. [`Inputs`] is all that a detection depends on, as data: the same inputs
//! give the same detection, always.

mod class;
mod idle_node;
mod presence;
mod quiet_instance;

pub use class::Class;
pub use presence::{Coverage, Presence};
pub use quiet_instance::{QuietCase, QuietPolicy, Quietness, Seen};

use crate::verdict::{Case, Judgement, judge};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A part of what a sweep reads. Each may fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotPart {
    /// The provider's list of machines.
    Inventory,
    /// What the provider itself measured of a machine that no agent reports from.
    ProviderMetrics,
}

/// Everything that a detection on one machine depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Whether it is there and runs.
    pub presence: Presence,
    /// What its agent reports.
    pub case: Case,
    /// What its provider measured, and what that is held against; none if nobody asked, or it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<QuietCase>,
    /// What could not be read of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SnapshotPart>,
}

/// What one sweep saw of one class of waste on one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "detection", rename_all = "snake_case")]
pub enum Detection {
    /// It is so.
    Confirmed {
        /// Begin of the window that shows it.
        since: Timestamp,
        /// End of that window: so far the evidence reaches.
        until: Timestamp,
        /// The last work that the same evidence shows, if it shows any.
        work: Option<Work>,
    },
    /// It is surely not so.
    Refuted {
        /// What shows it.
        because: String,
    },
    /// There is no such machine any more.
    Gone {
        /// What shows it.
        because: String,
    },
    /// Nobody knows.
    NotKnown,
}

/// Work that was seen before the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// When it was over.
    pub until: Timestamp,
    /// What it was, in words.
    pub what: String,
}

/// How one class is detected.
struct Detector {
    class: Class,
    /// Raised whenever the same inputs may give another answer than before.
    version: i32,
    rests_on: &'static [SnapshotPart],
    /// Of a machine that is there and runs, as far as anybody knows.
    detect: fn(&Inputs, &Judgement) -> Detection,
}

const DETECTORS: [Detector; 2] = [idle_node::DETECTOR, quiet_instance::DETECTOR];

impl Class {
    fn detector(self) -> &'static Detector {
        // Every class has one: a test sees to it.
        DETECTORS.iter().find(|detector| detector.class == self).unwrap_or(&idle_node::DETECTOR)
    }

    /// Version of its detector.
    #[must_use]
    pub fn version(self) -> i32 {
        self.detector().version
    }
}

/// Detects one class. `judgement` is that of the inputs' case, which is judged once for all classes.
#[must_use]
pub fn detect(class: Class, inputs: &Inputs, judgement: &Judgement) -> Detection {
    let Detector { rests_on, detect, .. } = class.detector();
    if let Some(detection) = inputs.presence.refutes(inputs.case.now_unix_ms) {
        return detection;
    }
    let lacks_a_part = inputs.failed.iter().any(|part| rests_on.contains(part));
    match detect(inputs, judgement) {
        // Work that was seen was seen, whatever else could not be read; nothing is confirmed on half of what it rests on.
        Detection::Confirmed { .. } if lacks_a_part => Detection::NotKnown,
        detection => detection,
    }
}

/// Detects one class anew, from nothing but the inputs.
#[must_use]
pub fn replay(class: Class, inputs: &Inputs) -> Detection {
    detect(class, inputs, &judge(&inputs.case))
}

#[cfg(test)]
mod tests;
