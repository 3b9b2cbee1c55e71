//! Findings, observed facts and prices in; proposals out.
//!
//! Pure: no input or output, no clock, no randomness. The same input gives the same proposal to the last byte, so a
//! proposal can be checked against its content hash long after it was made. One proposal costs a few microseconds.
//! It refuses to guess: a fact that is not known makes a [`rules::stop::NotProposed`] or an unknown saving, never a zero.

mod canonical;
pub mod proposal;
pub mod rules;

pub use proposal::{Proposal, Saving};
