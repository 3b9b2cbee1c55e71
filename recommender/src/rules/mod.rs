//! One file per rule: when it recommends something, when nothing and why.

pub mod architecture;
pub mod batch;
pub mod region;
pub mod request;
pub mod rightsize;
pub mod schedule;
pub mod spot;
pub mod stop;
pub mod task;
