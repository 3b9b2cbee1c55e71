//! What digests are made of, read from the store once for all lists.
//!
//! Cost: the open findings, those that were closed within the time, a report of each scope, and the history of each machine that was stopped by a plan.

use crate::{
    approvals::Given,
    findings::Finding,
    savings::{NotKnown, Saved, realised},
    store::{Store, StoreError, findings},
    sweep::KeptReport,
    work_unit::WorkUnit,
};
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};

/// All actions.
const ALL: u64 = u64::MAX >> 1;

/// What was read.
#[derive(Debug)]
pub struct Facts {
    /// When, by the database's clock.
    pub now: Timestamp,
    /// The open findings.
    pub open: Vec<Finding>,
    /// The findings that were closed since the begin of the time that was asked for.
    pub closed: Vec<Finding>,
    /// What was said of plans, by their hashes.
    pub answers: HashMap<String, Vec<Given>>,
    /// Plans that an action was made of.
    pub acted: HashSet<String>,
    /// What each action has saved, and whose machine it was.
    pub saved: Vec<(Saved, Option<String>)>,
    /// What the last sweep of each scope told.
    pub swept: Vec<Swept>,
    /// How many entries the audit log has, and the hash of the last one.
    pub audit: (u64, String),
}

/// What the last sweep of a scope told.
#[derive(Debug)]
pub struct Swept {
    /// Which scope, in words.
    pub scope: String,
    /// Its account; none for the nodes that no scope covers.
    pub account: Option<String>,
    /// Whether all of it could be read, and so can what was told of it: what is left out of a sum is named.
    pub is_complete: bool,
    /// What it told; none if it was never swept, or a report of this version is not there yet.
    pub report: Option<KeptReport>,
}

impl Facts {
    /// Reads them, and of closed findings those that were closed since then.
    ///
    /// # Errors
    /// If the database does not answer, or what was saved is not known.
    pub async fn read(store: &Store, since: Timestamp) -> Result<Self, NotKnown> {
        // First: what is appended while the rest is read is behind it.
        let audit = store.audit_head().await?;
        let open = store.open_findings().await?;
        let closed = store.findings_closed_since(since).await?;
        let plans = open.iter().filter_map(|finding| finding.plan.as_ref());
        let plans: Vec<String> = plans.map(|plan| plan.content_hash().to_string()).collect();
        let answers = store.answers(&plans).await?;
        let actions = store.actions(ALL).await?;
        let mut saved = Vec::new();
        for one in realised(store, &actions).await? {
            let finding = findings::by_id(store.connection(), &one.finding).await?;
            let owner = finding.and_then(|finding| finding.evidence.owner().map(str::to_owned));
            saved.push((one, owner));
        }
        let acted = actions.into_iter().map(|action| action.plan.to_string()).collect();
        let swept = swept(store).await?;
        Ok(Self { now: store.now().await?, open, closed, answers, acted, saved, swept, audit })
    }
}

async fn swept(store: &Store) -> Result<Vec<Swept>, StoreError> {
    let mut swept = Vec::new();
    for state in store.work_units().await?.states {
        let account = match &state.unit {
            WorkUnit::Scope(scope) => Some(scope.account.clone()),
            WorkUnit::Uncovered => None,
        };
        let scope = state.unit.to_string();
        let report = store.last_report(&scope).await?;
        let report: Option<KeptReport> = report.and_then(|report| serde_json::from_str(&report).ok());
        let is_complete = state.complete == Some(true) && report.is_some();
        swept.push(Swept { scope, account, is_complete, report });
    }
    Ok(swept)
}
