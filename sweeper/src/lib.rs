//! Reconciles what machines do with what the cloud bills for.

pub mod verdict;
