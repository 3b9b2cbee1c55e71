//! Reads the kernel's own books and reports what a machine really does.
//!
//! The rooms: `kernel` (what runs inside the kernel, and its `/proc` fallback), `host` (books of the whole machine),
//! `workload` (pure: whose work it is), `collect` (one reading of all of them), `fold` (pure: a reading becomes a
//! heartbeat), `source` (the heartbeats as the uplink asks for them).

pub mod source;
