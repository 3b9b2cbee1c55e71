//! What a machine does now, as a person looks at it: rates between two heartbeats, in words and in rows. Pure.
//!
//! [`shape`] is what there is to see, [`rates`] subtracts, [`waits`] names what the machine waits for, [`units`] writes numbers, [`mod@line`] is one line of
//! `watch`, and [`top`] is the screen of `top`. It measures nothing and invents nothing: a rate that cannot be known is
//! absent and shown as `-`, never as 0.

pub mod line;
pub mod rates;
#[cfg(test)]
pub(crate) mod samples;
pub mod shape;
pub mod top;
pub mod units;
pub mod waits;
