//! What a digest says: what waste costs now, what was found, ended and saved in a day or a week, what waits for a decision, and what nobody sees. Plain data.
//!
//! The sweeper makes it, keeps it as JSON until it is sent, and [`crate::email`] lays it out. Its texts are *untrusted*, as those of [`crate::message`]. What has no known price
//! is counted in each [`Sum`] and never taken for zero; what is not known as a whole is `None`. The reader's time is in it as it is shown: this crate has no database of zones.

mod view;

pub(crate) use view::{ClassBar, DigestView, view_of};

use jiff::{
    SignedDuration,
    civil::{Date, DateTime},
};
use model::{HourlyRate, Sum, Usd};
use serde::{Deserialize, Serialize};

/// How often a digest is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// Each day.
    Day,
    /// Each week.
    #[default]
    Week,
}

/// The time that it is about, by the clock of its readers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Its begin.
    pub from: DateTime,
    /// Its end.
    pub until: DateTime,
    /// When the figures were read.
    pub as_of: DateTime,
    /// The readers' zone, for example `Europe/Berlin`.
    pub zone: String,
}

/// Things of one kind: the first of them, how many there are, and what they cost or save together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first of them.
    pub first: Vec<T>,
    /// So many there are.
    pub count: usize,
    /// Together.
    pub sum: Sum,
}

/// Machines of which only figures are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machines {
    /// So many.
    pub count: usize,
    /// What they cost an hour.
    pub per_hour: Sum,
}

/// One class of waste.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// What people call it: `idle node`.
    pub name: String,
    /// Open findings of it.
    pub count: usize,
    /// What they cost an hour.
    pub per_hour: Sum,
}

/// What waste cost on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    /// The day, in the readers' zone.
    pub date: Date,
    /// What was spent on it, as far as its evidence reaches.
    pub cost: Sum,
}

/// An open finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// What `sweeper explain` takes.
    pub finding_id: String,
    /// What people call the resource, or its key.
    pub name: String,
    /// What it is, for example `EC2 instance, m5.2xlarge`.
    pub kind: Option<String>,
    /// Where it is.
    pub place: Option<String>,
    /// Whose it is, by its tags.
    pub owner: Option<String>,
    /// For how long it has lasted.
    pub lasts: SignedDuration,
    /// What it costs; none if that is not known.
    pub rate: Option<HourlyRate>,
    /// What it has cost so far; none if that is not known.
    pub spent: Option<Usd>,
}

/// A plan that people are to decide about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The beginning of its content hash, as `sweeper approve` takes it.
    pub plan: String,
    /// The finding that it would end.
    pub finding_id: String,
    /// What it would do.
    pub title: String,
    /// On what.
    pub name: String,
    /// What it would save; none if that is not known.
    pub saves: Option<HourlyRate>,
    /// How many have said yes so far.
    pub approvals: usize,
}

/// A machine that runs and that nobody sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// What people call it, or its key.
    pub name: String,
    /// Its type, if it is known.
    pub kind: Option<String>,
    /// What it costs; none if that is not known.
    pub rate: Option<HourlyRate>,
    /// Why nobody sees it.
    pub why: String,
}

/// What came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// So many findings.
    pub count: usize,
    /// What they cost while they lasted.
    pub spent: Sum,
}

/// What was saved by plans that people approved, as far as listings show the machines stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// In the period.
    pub in_period: Sum,
    /// Since the first of them.
    pub so_far: Sum,
    /// What a month saves of what is stopped still.
    pub per_month: Sum,
}

/// The end of the audit log: with it in a mail, a log that was cut or rewritten is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// So many entries there are.
    pub entries: u64,
    /// The last one's hash; empty if there is none.
    pub hash: String,
}

/// All that a digest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The list's name.
    pub list: String,
    /// Whose machines it is about; none if about everyone's.
    pub owner: Option<String>,
    /// How often it comes.
    pub every: Every,
    /// The time that it is about.
    pub period: Period,
    /// The machines that providers list as running, by the last sweeps; none if no sweep has listed any.
    pub running: Option<Machines>,
    /// The open findings, dearest first.
    pub open: Listed<Open>,
    /// The same by class, dearest first.
    pub classes: Vec<Class>,
    /// What waste cost on each of the last days, the oldest first.
    pub days: Vec<Day>,
    /// What was found in the period.
    pub found: Machines,
    /// What ended in the period.
    pub ended: Ended,
    /// What was saved.
    pub saved: Saved,
    /// The plans that people are to decide about, those that save most first.
    pub waiting: Listed<Waiting>,
    /// Machines that nobody sees, dearest first; none if no sweep has told yet.
    pub unseen: Option<Listed<Unseen>>,
    /// Places that the last sweep could not read, or not as a whole.
    pub unread: Vec<String>,
    /// The end of the audit log.
    pub audit: AuditHead,
}
