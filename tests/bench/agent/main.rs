//! What the node agent costs, measured beside what else could be used: `make bench-agent`.
//!
//! Each load runs without anybody watching and with each watcher in turn, in pairs whose order alternates. Two figures: the
//! median of the ratios of speed within the pairs, and that of CPU time per round by the counters of the load's own cgroup, which
//! stands still where a shared machine's speed does not. It prints a table and writes every single figure as JSON. It needs root.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a bench prints, and its figures need no 53rd bit"
)]

mod figures;
mod loads;
mod sink;
mod sizes;
mod watchers;

use clap::{Parser, Subcommand, ValueEnum};
use figures::{Figures, Pair};
use loads::Load;
use std::{path::PathBuf, time::Duration};
use watchers::Watcher;

#[derive(Debug, Parser)]
#[command(
    name = "bench-agent",
    about = "What the node agent costs beside the tools that could be used instead",
    after_help = "Examples:\n  make bench-agent\n  bench-agent --rounds 3 --seconds 2"
)]
struct Arguments {
    /// Pairs per load and watcher.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Length of each run, in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Living processes of the large memory figure.
    #[arg(long, default_value_t = 50_000)]
    processes: u32,
    /// Where every single figure goes, as JSON.
    #[arg(long, default_value = "target/bench-agent.json")]
    raw: PathBuf,
    /// What to measure; all of it, if nothing is named.
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Loads to run; all of them, if none is named.
    #[arg(long, value_enum)]
    load: Vec<Load>,
    /// Watchers to compare; all of them, if none is named.
    #[arg(long, value_enum)]
    watcher: Vec<Watcher>,
    #[command(subcommand)]
    part: Option<Generator>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Loads,
    Memory,
    Sizes,
}

/// The load generators run as processes of their own, so that their CPU time is not the bench's.
#[derive(Clone, Debug, Subcommand)]
enum Generator {
    #[command(hide = true)]
    Load {
        #[arg(value_enum)]
        load: Load,
        seconds: u64,
        group: PathBuf,
    },
    #[command(hide = true)]
    Echo { address: String },
    #[command(hide = true)]
    Hold { processes: u32 },
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    match &arguments.part {
        Some(Generator::Load { load, seconds, group }) => loads::generate(*load, Duration::from_secs(*seconds), group),
        Some(Generator::Echo { address }) => loads::echo(address),
        Some(Generator::Hold { processes }) => loads::hold(*processes),
        None => measure(&arguments).await,
    }
}

async fn measure(arguments: &Arguments) {
    let wants = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let mut figures = Figures::about_this_machine();
    let length = Duration::from_secs(arguments.seconds);
    if wants(Part::Loads) {
        for load in wanted(&arguments.load) {
            // Where speed is the figure, the kernel's own reads of the clock would slow every program down.
            watchers::measure_bpf(matches!(load, Load::Idle | Load::Paced | Load::Tcp));
            for watcher in wanted(&arguments.watcher) {
                for round in 0..arguments.rounds {
                    let pair = pair(load, watcher, length, round % 2 == 1).await;
                    eprintln!("{load:?}, {watcher:?}, {} of {}: {pair}", round + 1, arguments.rounds);
                    figures.add(load, watcher, pair);
                }
            }
        }
    }
    watchers::measure_bpf(false);
    if wants(Part::Memory) {
        for processes in [10, arguments.processes] {
            eprintln!("memory with {processes} living processes");
            figures.memory.push(sizes::memory(processes).await);
        }
    }
    if wants(Part::Sizes) {
        for workloads in [5, 50, 500] {
            eprintln!("size of heartbeats with {workloads} workloads");
            figures.sizes.push(sizes::heartbeat(workloads).await);
        }
    }
    figures.write(&arguments.raw);
    print!("{figures}");
}

/// What was named; all that there is, if nothing was.
fn wanted<T: ValueEnum + Copy>(named: &[T]) -> Vec<T> {
    if named.is_empty() { T::value_variants().to_vec() } else { named.to_vec() }
}

/// The same load once without and once with a watcher; `watched_first` turns the order round.
async fn pair(load: Load, watcher: Watcher, length: Duration, watched_first: bool) -> Pair {
    let mut alone = None;
    if !watched_first {
        alone = Some(loads::run(load, length).await);
    }
    let mut running = watcher.start().await;
    let before = running.cost();
    let watched = loads::run(load, length).await;
    let cost = running.cost() - before;
    running.stop().await;
    let alone = match alone {
        Some(alone) => alone,
        None => loads::run(load, length).await,
    };
    Pair { alone, watched, cost }
}
