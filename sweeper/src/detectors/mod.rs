//! Detectors: from a [`Snapshot`] to a [`Detection`] for each class of waste and each machine. Pure.
//!
//! What all classes have in common is decided here: a machine that is not there, or that does not run, is no waste of any class, and where a part
//! that a detector rests on could not be read, nothing is confirmed: the answer is *not known*, unless what was read refutes it. [`Inputs`] is all that an
//! answer depends on, as data: the same inputs give the same answer, always.

mod class;
mod idle_node;
mod presence;
mod quiet_instance;

pub use class::Class;

use crate::{
    snapshot::{Inputs, Machine, Snapshot, SnapshotPart},
    verdict::{Judgement, judge},
};
use jiff::Timestamp;

/// What one sweep saw of one class of waste on one machine.
#[derive(Debug)]
pub struct Detection<'a> {
    /// Which waste.
    pub class: Class,
    /// On what.
    pub machine: &'a Machine,
    /// Whether it is so.
    pub answer: Answer,
}

/// Whether something is waste of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    answer: fn(&Inputs, &Judgement) -> Answer,
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

/// The classes in the order in which they are told, each before the one that it yields to: what is open is asked before that one's turn ends it.
const ORDER: [Class; 2] = [Class::QuietInstance, Class::IdleNode];

/// Detects every class of waste: machine by machine, in the order of their keys.
pub fn detect(snapshot: &Snapshot) -> impl Iterator<Item = Detection<'_>> {
    snapshot.machines.iter().flat_map(|machine| {
        ORDER.into_iter().map(move |class| {
            let answer = answer(class, &machine.inputs, &machine.judgement);
            Detection { class, machine, answer }
        })
    })
}

/// What one class's detector says. `judgement` is that of the inputs' case, which is judged once for all classes.
fn answer(class: Class, inputs: &Inputs, judgement: &Judgement) -> Answer {
    let Detector { rests_on, answer, .. } = class.detector();
    if let Some(refuted) = presence::refutes(&inputs.presence, inputs.case.now_unix_ms) {
        return refuted;
    }
    let lacks_a_part = inputs.failed.iter().any(|part| rests_on.contains(part));
    match answer(inputs, judgement) {
        // Work that was seen was seen, whatever else could not be read; nothing is confirmed on half of what it rests on.
        Answer::Confirmed { .. } if lacks_a_part => Answer::NotKnown,
        answer => answer,
    }
}

/// What one class's detector says anew, from nothing but the inputs.
#[must_use]
pub fn replay(class: Class, inputs: &Inputs) -> Answer {
    answer(class, inputs, &judge(&inputs.case))
}

#[cfg(test)]
mod tests;
