//! Findings: one class of waste on one resource, with its evidence.
//!
//! Pure. A finding says what decided and what people ask first. Every observation that a decision rests on is in its record ([`crate::reconcile::Record`]),
//! which is written when something changes and not with each confirmation.

mod audience;
mod notice;
mod why;

pub use audience::audience;
pub use notice::{capitalised, charge, end_notice, notice, plan_notice};

use crate::{
    detectors::Class,
    inventory::{Instance, LaunchedBy, owner},
    pricing::Cost,
    snapshot::{
        BatchInputs, BatchState, GroupInputs, HoursCase, LeftoverInputs, QuietCase, Thing, WeekCase, WorkInputs,
    },
    verdict::{Case, Judgement, LastWork, words, work::WorkJudgement},
};
use jiff::Timestamp;
use model::ResourceKey;
use model::plan::Plan;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Names one finding: `f-` and twelve hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FindingId(pub String);

impl FindingId {
    /// The id of the finding of this class on this resource that was opened at this moment. Two sweepers that open the
    /// same finding at the same moment give it the same id.
    #[must_use]
    pub fn new(class: Class, resource: &ResourceKey, opened_at: Timestamp) -> Self {
        let text = format!("{}|{resource}|{}", class.as_str(), opened_at.as_millisecond());
        Self(format!("f-{}", &hex::encode(Sha256::digest(text))[..12]))
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One class of waste on one resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name.
    pub id: FindingId,
    /// Which waste.
    pub class: Class,
    /// On what.
    pub resource: ResourceKey,
    /// Whether it still holds.
    pub status: Status,
    /// Since when the waste lasts.
    pub since: Timestamp,
    /// When a sweep first found it.
    pub opened_at: Timestamp,
    /// When a sweep last confirmed it.
    pub confirmed_at: Timestamp,
    /// End of the window that last confirmed it: what it costs after that is nobody's guess.
    pub confirmed_until: Timestamp,
    /// How many sweeps in a row, up to the last one, confirmed it.
    pub confirmed_sweeps: u32,
    /// What it costs.
    pub cost: Cost,
    /// What the verdict was when it was last confirmed, and by what it was decided.
    pub evidence: Evidence,
    /// The decisions about it that are kept.
    pub recorded: Recorded,
    /// The plan that would end it, once it has been confirmed often enough.
    pub plan: Option<Plan>,
    /// Why there is no plan yet, or why there will be none.
    pub no_plan_because: Option<String>,
}

/// How many decisions about a finding are kept, and the last of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// So many.
    pub count: u32,
    /// When the last one was made.
    pub at: Option<Timestamp>,
    /// So far its evidence reached.
    pub until: Option<Timestamp>,
}

/// Whether a finding still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// Not refuted.
    Open,
    /// Ended.
    Closed {
        /// When.
        at: Timestamp,
        /// What refuted it.
        because: String,
    },
}

/// What a finding rests on, without the single observations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Evidence {
    /// On a machine.
    Machine(Box<MachineEvidence>),
    /// On what nobody uses.
    Leftover(Box<LeftoverEvidence>),
    /// On a group of machines.
    Group(Box<GroupEvidence>),
    /// On what is AWS Batch's.
    Batch(Box<BatchEvidence>),
    /// On work that should finish.
    Work(Box<WorkEvidence>),
}

/// What the verdict on a machine rests on, without the single observations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineEvidence {
    /// What the judgement depends on, without its observations ([`Case::summary`]); in a finding that a version before wrote last, with them.
    pub case: Case,
    /// The judgement.
    pub judgement: Judgement,
    /// What the provider said of the machine, or `None` for a node that no provider vouches for.
    pub machine: Option<Machine>,
    /// What a quiet instance rests on; none for every other class.
    #[serde(rename = "outside", default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<QuietCase>,
    /// How busy it was in its last full hours, on which a barely used machine rests; none if that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<HoursCase>,
    /// When it was quiet in each of its last weeks, on which quiet hours rest; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<WeekCase>,
    /// What ended last on it, where it is idle; none if no heartbeat that was read shows anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_work: Option<LastWork>,
}

/// What is listed of something that is left over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverEvidence {
    /// What it is, and whose; none if its provider lists it no more.
    pub thing: Option<Thing>,
    /// How it was listed, and for how long so.
    pub listed: LeftoverInputs,
}

/// What is listed of a group of machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEvidence {
    /// What it is, and whose; none if its provider lists it no more.
    pub thing: Option<Thing>,
    /// How it was listed, and what its machines did.
    pub group: GroupInputs,
}

/// What is listed of something that AWS Batch runs, keeps waiting or keeps ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchEvidence {
    /// What it is, and whose; none if Batch lists it no more.
    pub thing: Option<Thing>,
    /// How it was listed.
    pub batch: BatchInputs,
}

/// What is known of work that should finish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkEvidence {
    /// What it is, and whose; none if that is not known any more.
    pub thing: Option<Thing>,
    /// What the judgement depends on.
    pub job: WorkInputs,
    /// The judgement.
    pub judged: WorkJudgement,
}

/// What a provider said of a machine, as far as people want to read it in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Value of the `Name` tag.
    pub name: Option<String>,
    /// For example `m5.large`.
    pub instance_type: Option<String>,
    /// In the provider's words.
    pub state: Option<String>,
    /// Its last start.
    pub launched_at: Option<Timestamp>,
    /// Who owns it, by its tags.
    pub owner: Option<String>,
    /// Who started it for the first time, as far as the provider's trail was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched_by: Option<LaunchedBy>,
    /// What starts another one like it: the group that keeps it up, or the launch template that it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ResourceKey>,
}

impl Machine {
    /// Picks what a finding shows of an instance.
    #[must_use]
    pub fn of(instance: &Instance) -> Self {
        Self {
            name: instance.name.clone(),
            instance_type: instance.instance_type.clone(),
            state: instance.state.word().map(str::to_owned),
            launched_at: instance.launched_at,
            owner: owner(&instance.tags),
            launched_by: None,
            group: instance.started_by(),
        }
    }
}

impl Evidence {
    /// That on a machine; none for what is none.
    #[must_use]
    pub fn of_machine(&self) -> Option<&MachineEvidence> {
        match self {
            Self::Machine(evidence) => Some(evidence),
            Self::Leftover(_) | Self::Group(_) | Self::Batch(_) | Self::Work(_) => None,
        }
    }

    /// What the provider said of a machine; none for what is none, and for a node that no provider vouches for.
    #[must_use]
    pub fn machine(&self) -> Option<&Machine> {
        self.of_machine()?.machine.as_ref()
    }

    /// What a provider said of what is no machine.
    #[must_use]
    pub fn thing(&self) -> Option<&Thing> {
        match self {
            Self::Machine(_) => None,
            Self::Leftover(evidence) => evidence.thing.as_ref(),
            Self::Group(evidence) => evidence.thing.as_ref(),
            Self::Batch(evidence) => evidence.thing.as_ref(),
            Self::Work(evidence) => evidence.thing.as_ref(),
        }
    }

    /// When the machine works as a rule, as far as that is known, in a sentence: who is asked to stop one wants to know.
    #[must_use]
    pub fn regular_work(&self) -> Option<String> {
        let hours = self.of_machine()?.week.as_ref()?.week.regular_work()?;
        Some(format!("in its last weeks it worked {hours}"))
    }

    /// What ended last on an idle machine, as far as its heartbeats showed it, a sentence each.
    #[must_use]
    pub fn last_work(&self) -> Vec<String> {
        self.of_machine().and_then(|machine| machine.last_work.as_ref()).map(words::last_work).unwrap_or_default()
    }

    /// End of the window that it shows, if it shows one.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Machine(evidence) => match &evidence.metrics {
                Some(metrics) => Some(metrics.seen.until),
                None => Timestamp::from_millisecond(evidence.case.node.as_ref()?.last_heartbeat_unix_ms).ok(),
            },
            Self::Work(evidence) => Timestamp::from_millisecond(evidence.job.work.end.as_ref()?.end_unix_ms).ok(),
            Self::Group(evidence) => evidence.group.state.as_ref()?.members.as_ref()?.until,
            Self::Leftover(_) | Self::Batch(_) => None,
        }
    }

    /// Whether a provider vouched for the resource.
    #[must_use]
    pub fn was_listed(&self) -> bool {
        match self {
            Self::Machine(evidence) => evidence.machine.is_some(),
            Self::Work(evidence) => evidence.job.was_asked(),
            Self::Leftover(_) | Self::Group(_) | Self::Batch(_) => true,
        }
    }

    /// Who owns the resource, by its tags.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        let of_thing = || self.thing().and_then(|thing| thing.owner.as_deref());
        self.machine().and_then(|machine| machine.owner.as_deref()).or_else(of_thing)
    }

    /// What it is: the type of a machine, or `100 GiB gp3`.
    #[must_use]
    pub fn described(&self) -> Option<&str> {
        let of_thing = || self.thing().and_then(|thing| thing.what.as_deref());
        self.machine().and_then(|machine| machine.instance_type.as_deref()).or_else(of_thing)
    }
}

impl Evidence {
    /// Who started the machine or submitted the job, as far as the provider's trail was read.
    #[must_use]
    pub fn launched_by(&self) -> Option<&LaunchedBy> {
        match self {
            Self::Machine(evidence) => evidence.machine.as_ref()?.launched_by.as_ref(),
            Self::Batch(evidence) => match evidence.batch.state.as_ref()? {
                BatchState::Job(job) => job.submitted_by.as_ref(),
                BatchState::Queue(_) | BatchState::Environment(_) => None,
            },
            Self::Leftover(_) | Self::Group(_) | Self::Work(_) => None,
        }
    }
}

impl Finding {
    /// What people call the resource.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let name = match &self.evidence {
            Evidence::Machine(evidence) => {
                let machine = evidence.machine.as_ref().and_then(|machine| machine.name.as_deref());
                machine.or_else(|| evidence.case.node.as_ref().map(|node| node.hostname.as_str()))
            }
            Evidence::Leftover(_) | Evidence::Group(_) | Evidence::Batch(_) | Evidence::Work(_) => {
                self.evidence.thing().and_then(|thing| thing.name.as_deref())
            }
        };
        name.filter(|name| !name.is_empty())
    }
}
