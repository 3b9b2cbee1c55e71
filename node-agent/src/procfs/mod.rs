//! What `/proc` and the cgroup trees say of processes: the one parser of `/proc/PID/stat`, of `/proc/PID/cgroup` and of the cgroups' mounts.
//!
//! Both the reader of the kernel's counters and that of the host's signals stand on it; it knows neither.

pub mod cgroup_namespace;
pub mod cgroups;
pub mod place;
pub mod process;
pub mod stat;
