//! One file per rule: when it proposes, when it refuses and why.

pub mod stop;
