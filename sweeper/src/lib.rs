//! Reconciles what machines do with what the cloud bills for.

pub mod actions;
pub mod api;
pub mod approvals;
pub mod attribution;
pub mod audit;
pub mod cli;
pub mod config;
pub mod detectors;
pub mod digest;
pub mod doctor;
pub mod exemptions;
pub mod findings;
pub mod identity;
pub mod ingest;
pub mod interactions;
pub mod inventory;
pub mod jobs;
pub mod outbox;
pub mod priced;
pub mod pricing;
pub mod recommendations;
pub mod reconcile;
pub mod rollup;
pub mod routes;
pub mod rules;
pub mod savings;
pub mod snapshot;
pub mod store;
pub mod sweep;
pub mod telemetry;
pub mod verdict;
mod watched;
pub mod work_unit;

/// An error with its chain of sources, in one line: for logs and for people, printed once, where the error is handled.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        // Some libraries repeat their source in their own text.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = error.source();
    }
    text
}
