//! What the host as a whole shows: its books, its cgroup trees, its GPUs, its people and callers, its name.

pub mod books;
pub mod callers;
pub mod cgroup_cpu;
pub mod cgroup_namespace;
pub mod cgroup_usage;
pub mod cgroups;
pub mod clock;
pub mod facts;
pub mod gpu;
pub mod interfaces;
pub mod memory;
pub mod people;
pub mod process;
pub mod runtime;
pub mod shipped;
pub mod signals;
