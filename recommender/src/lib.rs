//! Findings, observed facts and prices in; plans and recommendations out.
//!
//! Pure: no input or output, no clock, no randomness. The same input gives the same plan to the last byte, so a plan can
//! be checked against its content hash long after it was made. One plan costs a few microseconds; what a machine
//! needed in 90 days and the best of 700 types for it about a millisecond of CPU time (a release build, 100 of them).
//! It refuses to guess: a fact that is not known makes a [`rules::stop::NoPlan`], a [`blocker::Blocker`] or an unknown saving, never a zero.
//! The rules as a reader needs them are in `docs/recommendations.md`.

pub mod backtest;
pub mod blocker;
pub mod catalogue;
pub mod demand;
pub mod executables;
pub mod fit;
pub mod policy;
pub mod rank;
pub mod recommendation;
pub mod requests;
pub mod rules;
pub mod spare;
pub mod week;
