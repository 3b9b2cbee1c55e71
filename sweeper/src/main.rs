//! The `sweeper` command.

use clap::Parser as _;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    sweeper::cli::main(sweeper::cli::Cli::parse()).await
}
