//! One file per rule: when it makes a plan, when it makes none and why.

pub mod stop;
