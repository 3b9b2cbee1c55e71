//! Classes of waste that are told from what agents report: once each, with their cost or the reason why that is not known, until they are over. Over each database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod barely_used;
mod failing_run;
mod idle_gpu;
mod orphaned_task;
mod quiet_hours;
mod silent_agent;
mod site;
mod spinning_job;
mod stuck_pod;
