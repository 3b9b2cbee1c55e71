//! Reconciles what machines do with what the cloud bills for.

pub mod config;
pub mod inventory;
pub mod pricing;
pub mod store;
pub mod verdict;
