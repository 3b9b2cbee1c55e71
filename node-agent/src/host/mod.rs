//! What the host as a whole shows: its books, its cgroup trees, its GPUs, its people and callers, its name.

pub mod books;
pub mod callers;
pub mod cgroup_cpu;
pub mod cgroup_usage;
pub mod facts;
pub mod gpu;
pub mod interfaces;
pub mod memory;
pub mod people;
pub mod runtime;
pub mod shipped;
pub mod signals;
pub mod whose;
