//! Judges what a node did, from its heartbeats alone.
//!
//! Pure: no clock, no database, no async. A [`Case`] holds everything that a judgement depends on, so a judgement can be
//! replayed from its stored evidence to the same answer. It refuses to guess: what was not measured makes a verdict
//! `unknown`, and `unknown` is never acted on. A judgement reads each
//! observation once.

mod ended;
mod gpu;
mod housekeeping;
mod judge;
mod network;
mod observation;
mod policy;
mod rows;
mod signal;
mod state;
mod wait;
mod watched;
mod window;
pub mod words;
pub mod work;

pub use ended::{EndedRun, LastSignal, LastWork};
pub use gpu::{GpuUse, gpu_use};
pub use housekeeping::BusyRow;
pub use judge::{Decision, Judgement, Unknown, is_no_shutdown, judge, last_work};
pub use observation::{Contradiction, Observation};
pub use policy::Policy;
pub use rows::DecidingRow;
pub use signal::{Counters, Signal};
pub(crate) use signal::{is_workload, sum};
pub use state::{Added, NodeSample, NodeState, StatePolicy};
pub use wait::{Protocol, Wait};
pub use window::{Case, Gpu, NodeFacts, Terminals, WorkloadLine};
