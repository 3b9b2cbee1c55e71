//! The counters of ingest, how the scopes stand, and their exposition in the Prometheus text format.

use super::{problem::Reason, tls};
use crate::{ingest, rules, sweep::ScopeStatus, telemetry};
use jiff::SignedDuration;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::{
    collections::BTreeSet,
    sync::{Mutex, OnceLock, PoisonError},
};

const STORED: &str = "heartbeats_stored_total";
const DUPLICATE: &str = "heartbeats_duplicate_total";
const LOST: &str = "heartbeats_lost_total";
const JOINED: &str = "nodes_joined_total";
const REFUSED: &str = "requests_refused_total";

const DISPUTED: &str = "nodes_disputed";
const ROLLUPS_BEHIND: &str = "rollups_behind_seconds";
const SCOPE_AGE: &str = "scope_last_complete_sweep_age_seconds";
const SCOPE_COMPLETE: &str = "scope_last_sweep_complete";

/// Provider, account and region.
type Labels = (String, String, String);

/// The scopes that were ever shown. A gauge keeps its last value, so that one which is not known must be told so.
static SHOWN: Mutex<BTreeSet<Labels>> = Mutex::new(BTreeSet::new());

static EXPOSITION: OnceLock<PrometheusHandle> = OnceLock::new();

/// Makes this process's counters visible at `/metrics`. Only the first call in a process has an effect.
pub fn install() {
    EXPOSITION.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::error!("another metrics recorder is in place; /metrics stays empty");
        }
        metrics::describe_counter!(STORED, "Heartbeats that were new and are stored.");
        metrics::describe_counter!(DUPLICATE, "Heartbeats that had been stored before.");
        metrics::describe_counter!(LOST, "Heartbeats that their sender discarded before they arrived.");
        metrics::describe_counter!(JOINED, "Joins by which a node got a token, renewals included.");
        metrics::describe_counter!(REFUSED, "Requests that were refused, by reason.");
        metrics::describe_counter!(rules::REFUSED, "Versions of the rules file that were refused.");
        metrics::describe_counter!(tls::REFUSED, "Changes of the TLS files that were refused.");
        metrics::describe_histogram!(ingest::GROUP_SIZE, "Senders whose heartbeats were stored in one transaction.");
        metrics::describe_counter!(telemetry::MADE, "Rollups that were made, and made anew.");
        metrics::describe_counter!(
            telemetry::TOO_LATE,
            "Rollups that could not be made any more, because their heartbeats came after the retention of others."
        );
        metrics::describe_gauge!(
            ROLLUPS_BEHIND,
            "Seconds since the oldest rollup has been due that is not made; 0 if none is due, NaN if not known."
        );
        metrics::describe_gauge!(
            DISPUTED,
            "Nodes that somebody without their key has claimed to be; NaN if not known."
        );
        metrics::describe_gauge!(
            SCOPE_AGE,
            "Seconds since a scope was last read as a whole; NaN if never or not known."
        );
        metrics::describe_gauge!(SCOPE_COMPLETE, "1 if the last sweep read all of a scope, else 0; NaN if not known.");
        for name in
            [STORED, DUPLICATE, LOST, JOINED, rules::REFUSED, tls::REFUSED, telemetry::MADE, telemetry::TOO_LATE]
        {
            metrics::counter!(name).increment(0);
        }
        handle
    });
}

pub(super) fn render() -> String {
    EXPOSITION.get().map_or_else(String::new, |handle| {
        handle.run_upkeep();
        handle.render()
    })
}

pub(crate) fn stored(stored: &crate::store::Stored) {
    metrics::counter!(STORED).increment(stored.stored.into());
    metrics::counter!(DUPLICATE).increment(stored.duplicates.into());
    metrics::counter!(LOST).increment(stored.lost);
}

pub(super) fn joined() {
    metrics::counter!(JOINED).increment(1);
}

pub(super) fn refused(reason: Reason) {
    metrics::counter!(REFUSED, "reason" => reason.word()).increment(1);
}

/// Shows how many nodes are disputed; `None` if the database did not say.
pub(super) fn disputed(nodes: Option<u64>) {
    let nodes = nodes.map(|nodes| u32::try_from(nodes).unwrap_or(u32::MAX));
    metrics::gauge!(DISPUTED).set(nodes.map_or(f64::NAN, f64::from));
}

/// Shows how long the oldest rollup has been due; `None` if the database did not say.
pub(super) fn rollups_behind(behind: Option<SignedDuration>) {
    metrics::gauge!(ROLLUPS_BEHIND).set(behind.map_or(f64::NAN, |behind| behind.as_secs_f64()));
}

/// Shows how the scopes stand.
pub(super) fn scopes(scopes: &[ScopeStatus]) {
    scopes_unknown();
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for scope in scopes {
        let word = |word: &Option<String>| word.clone().unwrap_or_default();
        let labels = (scope.provider.clone(), word(&scope.account), word(&scope.region));
        let age = scope.last_complete_age_s.map_or(f64::NAN, |age| SignedDuration::from_secs(age).as_secs_f64());
        let complete = scope.complete.map_or(f64::NAN, |complete| if complete { 1.0 } else { 0.0 });
        show(&labels, age, complete);
        shown.insert(labels);
    }
}

/// The database did not say.
pub(super) fn scopes_unknown() {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    shown.iter().for_each(|labels| show(labels, f64::NAN, f64::NAN));
}

fn show((provider, account, region): &Labels, age: f64, complete: f64) {
    for (name, value) in [(SCOPE_AGE, age), (SCOPE_COMPLETE, complete)] {
        let labels = [("provider", provider.clone()), ("account", account.clone()), ("region", region.clone())];
        metrics::gauge!(name, &labels).set(value);
    }
}
