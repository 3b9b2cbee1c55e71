//! Findings, observed facts and prices in; plans out.
//!
//! Pure: no input or output, no clock, no randomness. The same input gives the same plan to the last byte, so a plan can
//! be checked against its content hash long after it was made. One plan costs a few microseconds.
//! It refuses to guess: a fact that is not known makes a [`rules::stop::NoPlan`] or an unknown saving, never a zero.

pub mod rules;
