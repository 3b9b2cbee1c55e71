//! What runs inside the kernel, seen from outside: its offsets, its lifecycle, its counters; and `/proc` where that is refused.
//!
//! Both sides answer the same question with the same data, [`Deltas`](crate::model::Deltas): what did the tasks of each key do since the last
//! sample, and who lives now. Both say in the same words what they cannot answer: [`Statuses`](crate::model::Statuses).

mod attach;
mod bpf;
mod command_line;
mod drain;
pub mod error;
pub mod events;
pub mod fallback;
pub mod lineage;
pub mod loader;
pub mod object;
pub mod offsets;
mod syscalls;
mod timed;
mod types;

/// What is wanted from the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Wanted {
    /// Count system calls by class.
    #[arg(long)]
    pub syscall_classes: bool,
}
