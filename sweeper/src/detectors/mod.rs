//! Detectors: from a [`Snapshot`] to a [`Detection`] for each class of waste and each resource that may be of it. Pure.
//!
//! What all classes have in common is decided here: a resource that is not there, and a machine that does not run, is no waste of any class, and where a part
//! that a detector rests on could not be read, nothing is confirmed: the answer is *not known*, unless what was read refutes it. [`Inputs`] is all that an
//! answer depends on, as data: the same inputs give the same answer, always.

mod abandoned_worker;
mod barely_used;
mod batch;
mod blocked_queue;
mod class;
mod failing_run;
mod held_capacity;
mod idle_gpu;
mod idle_group;
mod idle_node;
mod idle_worker;
mod leftover;
mod lost_job;
mod orphaned_job;
mod orphaned_snapshot;
mod orphaned_task;
mod presence;
mod quiet_hours;
mod quiet_instance;
mod relaunching_group;
mod silent_agent;
mod spinning_job;
mod starting_job;
mod stopped_instance;
mod straggling_job;
mod stuck_job;
mod unattached_volume;
mod unregistered_worker;
mod unused_address;

pub use class::{Class, FoundOn};
pub use presence::says_ended;

use crate::{
    pricing::Cost,
    snapshot::{
        BatchInputs, BatchResource, Group, GroupInputs, Inputs, Leftover, LeftoverInputs, Machine, MachineInputs,
        Snapshot, SnapshotPart, Work as Job, WorkInputs,
    },
    verdict::{
        Judgement, judge,
        work::{self, WorkJudgement},
    },
};
use jiff::{SignedDuration, Timestamp};
use model::{HourlyRate, ResourceKey, ResourceKind};

const HOURS_OF_A_WEEK: i64 = 168;

/// What one sweep saw of one class of waste on one resource.
#[derive(Debug)]
pub struct Detection<'a> {
    /// Which waste.
    pub class: Class,
    /// On what.
    pub on: On<'a>,
    /// Whether it is so.
    pub answer: Answer,
}

impl Detection<'_> {
    /// What the waste costs: what it was found on, and not known where it is a part of that.
    #[must_use]
    pub fn cost(&self) -> Cost {
        match (self.class, self.on.cost()) {
            (Class::IdleGpu, Cost::Known { per_hour, .. }) => Cost::Unknown {
                why: format!("its GPUs have no price of their own; the whole machine costs {per_hour}"),
            },
            (Class::RelaunchingGroup, _) => {
                let spent = match self.on {
                    On::Group(Group { inputs: GroupInputs { state: Some(state), .. }, .. }) => {
                        state.relaunches.as_ref().and_then(|ended| ended.spent)
                    }
                    _ => None,
                };
                let spent =
                    spent.map(|spent| format!("; what it had started cost {} while it was idle", spent.in_cents()));
                Cost::Unknown { why: format!("what it starts next nobody knows{}", spent.unwrap_or_default()) }
            }
            (Class::QuietHours, Cost::Known { per_hour, as_of }) => {
                let On::Machine(Machine { inputs: MachineInputs { week: Some(case), .. }, .. }) = self.on else {
                    return Cost::Unknown { why: "how many hours it rests is not known".to_owned() };
                };
                let quiet = case.week.quiet_hours();
                // Those hours' part of what it costs all week.
                let micros = per_hour.per_hour().micros().saturating_mul(i64::from(quiet)) / HOURS_OF_A_WEEK;
                Cost::Known { per_hour: HourlyRate::from_micros(micros), as_of: *as_of }
            }
            (_, cost) => cost.clone(),
        }
    }
}

/// What may be waste.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// A machine.
    Machine(&'a Machine),
    /// What nobody may use.
    Leftover(&'a Leftover),
    /// A group of machines.
    Group(&'a Group),
    /// What AWS Batch runs, keeps waiting or keeps ready.
    Batch(&'a BatchResource),
    /// Work that should finish.
    Work(&'a Job),
}

impl<'a> On<'a> {
    /// Its key.
    #[must_use]
    pub fn resource(self) -> &'a ResourceKey {
        match self {
            Self::Machine(machine) => &machine.subject.id,
            Self::Leftover(leftover) => &leftover.id,
            Self::Group(group) => &group.id,
            Self::Batch(resource) => &resource.id,
            Self::Work(job) => &job.id,
        }
    }

    /// What it costs.
    #[must_use]
    pub fn cost(self) -> &'a Cost {
        match self {
            Self::Machine(machine) => &machine.cost,
            Self::Leftover(leftover) => &leftover.cost,
            Self::Group(group) => &group.cost,
            Self::Batch(resource) => &resource.cost,
            Self::Work(job) => &job.cost,
        }
    }

    /// What the answer depends on.
    #[must_use]
    pub fn inputs(self) -> Inputs {
        match self {
            Self::Machine(machine) => Inputs::Machine(Box::new(machine.inputs.clone())),
            Self::Leftover(leftover) => Inputs::Leftover(leftover.inputs.clone()),
            Self::Group(group) => Inputs::Group(group.inputs.clone()),
            Self::Batch(resource) => Inputs::Batch(Box::new(resource.inputs.clone())),
            Self::Work(job) => Inputs::Work(Box::new(job.inputs.clone())),
        }
    }

    /// Whether a provider was asked about it at all.
    #[must_use]
    pub fn was_asked(self) -> bool {
        match self {
            Self::Machine(machine) => machine.inputs.presence.was_asked(),
            Self::Leftover(leftover) => leftover.inputs.was_asked(),
            Self::Group(group) => group.inputs.was_asked(),
            Self::Batch(resource) => resource.inputs.was_asked(),
            Self::Work(job) => job.inputs.was_asked(),
        }
    }
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
    answer: Of,
}

/// What a class is found on, and what its detector says of a resource that is there, as far as anybody knows.
#[derive(Clone, Copy)]
enum Of {
    /// Machines that run.
    Machine(fn(&MachineInputs, &Judgement) -> Answer),
    /// What is billed though nobody uses it, of one kind.
    Leftover(ResourceKind, fn(&LeftoverInputs) -> Answer),
    /// Groups of machines.
    Group(fn(&GroupInputs) -> Answer),
    /// What is AWS Batch's, of one kind.
    Batch(ResourceKind, fn(&BatchInputs) -> Answer),
    /// Work that should finish.
    Work(fn(&WorkInputs, &WorkJudgement) -> Answer),
}

/// In the order in which they are told, each before the one that it yields to: what is open is asked before that one's turn ends it.
const DETECTORS: [Detector; 25] = [
    quiet_instance::DETECTOR,
    quiet_hours::DETECTOR,
    barely_used::DETECTOR,
    idle_node::DETECTOR,
    idle_gpu::DETECTOR,
    idle_worker::DETECTOR,
    unregistered_worker::DETECTOR,
    abandoned_worker::DETECTOR,
    silent_agent::DETECTOR,
    unattached_volume::DETECTOR,
    unused_address::DETECTOR,
    orphaned_snapshot::DETECTOR,
    stopped_instance::DETECTOR,
    idle_group::DETECTOR,
    relaunching_group::DETECTOR,
    blocked_queue::DETECTOR,
    held_capacity::DETECTOR,
    starting_job::DETECTOR,
    straggling_job::DETECTOR,
    orphaned_job::DETECTOR,
    stuck_job::DETECTOR,
    spinning_job::DETECTOR,
    failing_run::DETECTOR,
    orphaned_task::DETECTOR,
    lost_job::DETECTOR,
];

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

/// Detects every class of waste: resource by resource, machines first, in the order of their keys.
pub fn detect(snapshot: &Snapshot) -> impl Iterator<Item = Detection<'_>> {
    let machines = snapshot.machines.iter().flat_map(|machine| {
        DETECTORS.iter().filter_map(move |detector| {
            let Of::Machine(decide) = detector.answer else { return None };
            let answer = of_machine(detector, decide, &machine.inputs, &machine.judgement);
            Some(Detection { class: detector.class, on: On::Machine(machine), answer })
        })
    });
    let leftovers = snapshot.leftovers.iter().flat_map(|leftover| {
        DETECTORS.iter().filter_map(move |detector| {
            let Of::Leftover(kind, decide) = detector.answer else { return None };
            let answer = of_leftover(detector, decide, &leftover.inputs);
            let detection = Detection { class: detector.class, on: On::Leftover(leftover), answer };
            (kind == leftover.id.kind).then_some(detection)
        })
    });
    let groups = snapshot.groups.iter().flat_map(|group| {
        DETECTORS.iter().filter_map(move |detector| {
            let Of::Group(decide) = detector.answer else { return None };
            let answer = of_group(detector, decide, &group.inputs);
            Some(Detection { class: detector.class, on: On::Group(group), answer })
        })
    });
    let batch = snapshot.batch.iter().flat_map(|resource| {
        DETECTORS.iter().filter_map(move |detector| {
            let Of::Batch(kind, decide) = detector.answer else { return None };
            if kind != resource.id.kind {
                return None;
            }
            let answer = of_batch(detector, decide, &resource.inputs);
            Some(Detection { class: detector.class, on: On::Batch(resource), answer })
        })
    });
    let work = snapshot.work.iter().flat_map(|job| {
        DETECTORS.iter().filter_map(move |detector| {
            let Of::Work(decide) = detector.answer else { return None };
            let answer = of_work(detector, decide, &job.inputs, &job.judgement);
            Some(Detection { class: detector.class, on: On::Work(job), answer })
        })
    });
    machines.chain(leftovers).chain(groups).chain(batch).chain(work)
}

/// What one class's detector says of a machine. `judgement` is that of the inputs' case, which is judged once for all classes.
fn of_machine(
    detector: &Detector,
    decide: fn(&MachineInputs, &Judgement) -> Answer,
    inputs: &MachineInputs,
    judgement: &Judgement,
) -> Answer {
    let refuted = presence::refutes(&inputs.presence, inputs.case.now_unix_ms);
    refuted.unwrap_or_else(|| detector.unless_it_lacks(&inputs.failed, decide(inputs, judgement)))
}

fn of_leftover(detector: &Detector, decide: fn(&LeftoverInputs) -> Answer, inputs: &LeftoverInputs) -> Answer {
    let refuted = leftover::refutes(inputs);
    refuted.unwrap_or_else(|| detector.unless_it_lacks(&inputs.failed, decide(inputs)))
}

fn of_group(detector: &Detector, decide: fn(&GroupInputs) -> Answer, inputs: &GroupInputs) -> Answer {
    let refuted = idle_group::refutes(inputs);
    refuted.unwrap_or_else(|| detector.unless_it_lacks(&inputs.failed, decide(inputs)))
}

fn of_batch(detector: &Detector, decide: fn(&BatchInputs) -> Answer, inputs: &BatchInputs) -> Answer {
    let refuted = batch::refutes(inputs);
    refuted.unwrap_or_else(|| detector.unless_it_lacks(&inputs.failed, decide(inputs)))
}

fn of_work(
    detector: &Detector,
    decide: fn(&WorkInputs, &WorkJudgement) -> Answer,
    inputs: &WorkInputs,
    judgement: &WorkJudgement,
) -> Answer {
    detector.unless_it_lacks(&inputs.failed, decide(inputs, judgement))
}

/// So many seconds; more than there can be are as good as for ever.
fn seconds(seconds: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}

impl Detector {
    /// Work that was seen was seen, whatever else could not be read; nothing is confirmed on half of what it rests on.
    fn unless_it_lacks(&self, failed: &[SnapshotPart], answer: Answer) -> Answer {
        let lacks_a_part = failed.iter().any(|part| self.rests_on.contains(part));
        match answer {
            Answer::Confirmed { .. } if lacks_a_part => Answer::NotKnown,
            answer => answer,
        }
    }
}

/// What one class's detector says anew, from nothing but the inputs.
#[must_use]
pub fn replay(class: Class, inputs: &Inputs) -> Answer {
    let detector = class.detector();
    match (detector.answer, inputs) {
        (Of::Machine(decide), Inputs::Machine(inputs)) => of_machine(detector, decide, inputs, &judge(&inputs.case)),
        (Of::Leftover(_, decide), Inputs::Leftover(inputs)) => of_leftover(detector, decide, inputs),
        (Of::Group(decide), Inputs::Group(inputs)) => of_group(detector, decide, inputs),
        (Of::Batch(_, decide), Inputs::Batch(inputs)) => of_batch(detector, decide, inputs),
        (Of::Work(decide), Inputs::Work(inputs)) => of_work(detector, decide, inputs, &work::judge(&inputs.work)),
        // No class has inputs of another kind.
        _ => Answer::NotKnown,
    }
}

#[cfg(test)]
mod tests;
