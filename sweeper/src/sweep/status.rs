//! How the sweeps of each scope get on, the same for people, programs and the HTTP interface.

use super::Timetable;
use crate::{
    store::{WorkUnitState, WorkUnits},
    work_unit::WorkUnit,
};
use chrono::DateTime;
use jiff::Timestamp;
use serde::Serialize;

/// One scope, or the nodes that no scope covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeStatus {
    /// For example `aws`; `none` for the nodes that no scope covers.
    pub provider: String,
    /// Account, if a provider is asked.
    pub account: Option<String>,
    /// Region, if a provider is asked.
    pub region: Option<String>,
    /// The scheduled time that it was last swept for.
    pub swept_for: Option<Timestamp>,
    /// The next scheduled time, by this configuration.
    pub next_at: Option<Timestamp>,
    /// When its last sweep began; it is under way if `swept_by` is set.
    pub started_at: Option<Timestamp>,
    /// When a sweep of it last ended.
    pub finished_at: Option<Timestamp>,
    /// Whether all of it could be read then; `None` if it was never swept.
    pub complete: Option<bool>,
    /// When all of it was last read.
    pub last_complete_at: Option<Timestamp>,
    /// How long ago that was, by the database's clock.
    pub last_complete_age_s: Option<i64>,
    /// What was listed, in words.
    pub listed: Option<String>,
    /// What could not be, and why.
    pub failed: Option<String>,
    /// Who sweeps it now.
    pub swept_by: Option<String>,
    /// When somebody else may take it over, if that replica is not heard of again.
    pub lease_until: Option<Timestamp>,
    /// How often it was claimed.
    pub lease_epoch: i64,
}

impl ScopeStatus {
    /// Of all scopes.
    #[must_use]
    pub fn of(units: WorkUnits, timetable: &Timetable) -> Vec<Self> {
        let now = units.now;
        let moment = DateTime::from_timestamp_millis(now.as_millisecond());
        let next = |unit: &WorkUnit| moment.and_then(|moment| timetable.next_after(unit, moment));
        units.states.into_iter().map(|state| Self { next_at: next(&state.unit), ..Self::one(state, now) }).collect()
    }

    fn one(state: WorkUnitState, now: Timestamp) -> Self {
        let (provider, account, region) = state.unit.words();
        let asked = |word: &str| Some(word.to_owned()).filter(|_| state.unit != WorkUnit::Uncovered);
        let (account, region) = (asked(account), asked(region));
        let held = state.held;
        Self {
            provider: provider.to_owned(),
            account,
            region,
            swept_for: state.swept_for,
            next_at: None,
            started_at: state.started_at,
            finished_at: state.finished_at,
            complete: state.complete,
            last_complete_at: state.last_complete_at,
            last_complete_age_s: state.last_complete_at.map(|at| now.duration_since(at).as_secs().max(0)),
            listed: state.listed,
            failed: state.failed,
            lease_until: held.as_ref().map(|held| held.until),
            swept_by: held.map(|held| held.by),
            lease_epoch: state.epoch,
        }
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.account, &self.region) {
            (Some(account), Some(region)) => format!("{} {account} {region}", self.provider),
            _ => WorkUnit::Uncovered.to_string(),
        }
    }
}
