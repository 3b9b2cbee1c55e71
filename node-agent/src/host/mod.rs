//! What the host as a whole shows: its books, its cgroup trees, its GPUs, its name.

pub mod books;
pub mod cgroups;
pub mod clock;
pub mod facts;
pub mod gpu;
