//! What is recommended, for people and programs: names of fields are stable.

use super::words;
use jiff::Timestamp;
use model::Usd;
use recommender::{
    blocker::NotRecommended,
    catalogue::Worth,
    rank::{Group, total},
    recommendation::{Change, Evidence, Level, Recommendation},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// All of it, as of one moment.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// As of when.
    pub at: Timestamp,
    /// What is saved in a month of 730 hours at list prices if the first of each machine is done, in micro-dollars.
    pub saving_micro_usd_per_month: i64,
    /// Whether a change of type can be approved here: not yet.
    pub is_action: bool,
    /// What to do, the first one first.
    pub recommendations: Vec<Recommended>,
    /// Machines of which nothing is recommended.
    pub not_recommended: Vec<Refused>,
}

/// One recommendation.
#[derive(Debug, Serialize)]
pub struct Recommended {
    /// Which is to be done first: from 1 on.
    pub rank: usize,
    /// The machine's key.
    pub resource: String,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is, by its tags or by who started it.
    pub owner: Option<String>,
    /// What would be changed.
    pub change: Change,
    /// The same in words.
    pub what: String,
    /// What it saves in a month at list prices, in micro-dollars; none if it is there to prevent failures.
    pub list_micro_usd_per_month: Option<i64>,
    /// By what the bill is lower by; none if that is not known.
    pub effective_micro_usd_per_month: Option<i64>,
    /// `high`, `medium`, `low`
    pub confidence: Level,
    /// Why it is not higher.
    pub doubts: Vec<String>,
    /// How much was observed.
    pub observed: Option<Observation>,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// What may go wrong.
    pub risks: Vec<String>,
    /// How it is undone.
    pub undo: String,
    /// When it was last read what the zone offers.
    pub catalogue_read_at: Option<Timestamp>,
}

/// How much was observed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Observation {
    /// Whole days from the first measured hour to the last one.
    pub days: u32,
    /// Hours that were measured.
    pub hours: u32,
    /// Hours that were neither measured nor spent stopped.
    pub gaps: u32,
}

/// A machine of which nothing is recommended.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// Its key.
    pub resource: String,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// All reasons that are known, the most fundamental first.
    pub reasons: Vec<String>,
    /// Types that cost less, those nearest to the present price last; at most 12.
    pub considered: Vec<ConsideredType>,
}

/// A type that costs less and is not recommended.
#[derive(Debug, Serialize)]
pub struct ConsideredType {
    /// Which.
    pub machine_type: String,
    /// Why not.
    pub why_not: String,
}

/// A machine that is asked about.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) resource: String,
    pub(super) name: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) catalogue_read_at: Option<Timestamp>,
}

impl Answer {
    pub(super) fn of(
        at: Timestamp,
        groups: &[Group],
        subjects: &BTreeMap<String, Subject>,
        not_recommended: Vec<Refused>,
    ) -> Self {
        let all = groups.iter().flat_map(|group| &group.ranked);
        let recommendations = all.zip(1..).filter_map(|(one, rank)| {
            let subject = subjects.get(&one.resource.to_string())?;
            Some(Recommended::of(rank, subject, one))
        });
        Self {
            at,
            saving_micro_usd_per_month: total(groups).known.micros(),
            is_action: false,
            recommendations: recommendations.collect(),
            not_recommended,
        }
    }
}

impl Recommended {
    fn of(rank: usize, subject: &Subject, one: &Recommendation) -> Self {
        let observed = match &one.evidence {
            Evidence::Size { demand, .. } => Some(demand.observed),
            _ => None,
        };
        let effective = |worth: &Worth| match worth {
            Worth::Known(saved) => Some(saved.micros()),
            Worth::Unknown(_) => None,
        };
        Self {
            rank,
            resource: subject.resource.clone(),
            name: subject.name.clone(),
            owner: subject.owner.clone(),
            change: one.change.clone(),
            what: words::change(&one.change),
            list_micro_usd_per_month: one.saving.as_ref().map(|saving| saving.list_per_month).map(Usd::micros),
            effective_micro_usd_per_month: one.saving.as_ref().and_then(|one| effective(&one.effective_per_month)),
            confidence: one.confidence.level,
            doubts: one.confidence.doubts.iter().map(ToString::to_string).collect(),
            observed: observed.map(|it| Observation { days: it.days, hours: it.hours, gaps: it.gaps }),
            evidence: words::evidence(&one.evidence),
            risks: one.risks.iter().map(ToString::to_string).collect(),
            undo: one.undo.to_string(),
            catalogue_read_at: subject.catalogue_read_at,
        }
    }
}

impl Refused {
    pub(super) fn of(subject: &Subject, why: &NotRecommended) -> Self {
        let considered = why
            .considered
            .iter()
            .map(|one| ConsideredType { machine_type: one.machine_type.clone(), why_not: one.why_not.to_string() });
        Self {
            resource: subject.resource.clone(),
            name: subject.name.clone(),
            owner: subject.owner.clone(),
            reasons: why.blockers.iter().map(ToString::to_string).collect(),
            considered: considered.collect(),
        }
    }
}
