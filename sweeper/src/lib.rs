//! Reconciles what machines do with what the cloud bills for.

pub mod api;
pub mod config;
mod ingest;
pub mod inventory;
pub mod pricing;
pub mod store;
pub mod verdict;
