//! Reads the kernel's own counters and reports what a machine really does.
//!
//! The modules, from below: `coverage` (what was measured and what was not), `model` (plain data that the others hand to each other),
//! `procfs` and `netlink` (the one parser of each), `workload` (pure: whose work it is), `kernel` (what runs inside the kernel, and its
//! `/proc` fallback), `host` (counters of the whole machine), `collect` (one sample of all of them), `aggregate` (pure: a sample becomes a
//! heartbeat), `source` (the heartbeats as `exporter` asks for them). None imports one above it: `docs/architecture.md`.
//!
//! `rules` keeps the rules in force, by which `workload` judges.
//!
//! And on the way out: `cli`, `config`, `identity` (which machine this is), `state` and `spool` (what survives a restart),
//! `exporter` (what empties the spool), `names` (pure: texts made harmless), `view` (pure: what people see of a heartbeat),
//! `metrics` (what Prometheus sees of it), `http`, and `run`, the loop that holds them together.

pub mod aggregate;
pub mod budget;
pub mod cli;
pub mod collect;
pub mod config;
pub mod coverage;
pub mod exporter;
pub mod host;
pub mod http;
pub mod identity;
pub mod kernel;
pub mod metrics;
pub mod model;
pub mod names;
mod netlink;
mod own_pages;
pub mod privileges;
pub mod procfs;
pub mod rules;
pub mod run;
pub mod source;
pub mod spool;
pub mod state;
pub mod switch;
pub mod view;
pub mod workload;
