//! What the host as a whole shows: its counters, its cgroup trees, its GPUs, its interactive sessions and inbound peers, its name.

pub mod cgroup_cpu;
pub mod cgroup_usage;
pub mod connections;
pub mod counters;
pub mod facts;
pub mod gpu;
mod guarded;
pub mod interfaces;
pub mod memory;
pub mod runtime;
pub mod sessions;
pub mod shipped;
pub mod signals;
pub mod whose;
