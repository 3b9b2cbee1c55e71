//! Reconciles what machines do with what the cloud bills for.

pub mod inventory;
pub mod pricing;
pub mod verdict;
