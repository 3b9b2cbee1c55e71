//! The `sweeper` command.

use clap::Parser as _;
use std::process::ExitCode;

/// Each heartbeat is hundreds of small allocations, freed by another thread than made them; the C library's allocator takes a quarter of what
/// taking heartbeats in costs (docs/journal/2026-11-25-ingest-again.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    sweeper::cli::main(sweeper::cli::Cli::parse()).await
}
