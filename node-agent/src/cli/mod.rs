//! The command line: what can be said, and what each exit code means.

pub mod doctor;
pub mod glossary;
pub mod log;
pub mod once;
mod rules;
pub mod terminal;
pub mod top;
pub mod watch;

use crate::{
    config::{self, Config, ConfigError, Surroundings},
    host::runtime::{self, serve},
    kernel::{self, loader},
    run,
    state::StateError,
    switch::Switch,
};
use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::{path::PathBuf, process::ExitCode, time::Duration};
use tokio_util::sync::CancellationToken;

const SUCCESS: u8 = 0;
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const INCOMPLETE: u8 = 3;
const IN_USE: u8 = 4;

const AFTER_HELP: &str = "\
Examples:
  node-agent doctor                 what can be measured on this host, and what cannot, and why
  node-agent rules check FILE       whether agents would take these rules, or the line at fault
  node-agent top                    what it does right now, and what it waits for, in this terminal
  node-agent watch --json | jq .    the same as a stream: one heartbeat per line
  node-agent once | jq .counters    one heartbeat, as it would be sent, on standard output
  NODE_AGENT_SWEEPER_URL=https://sweeper.example.com \\
  NODE_AGENT_JOIN_TOKEN_FILE=/etc/cloud-sweeper/join-token \\
  node-agent run                    measure and report until told to stop (Ctrl-C or SIGTERM)

Configuration:
  --config FILE, else /etc/cloud-sweeper/node-agent.toml if it exists. Each key is also a variable,
  which wins: interval is NODE_AGENT_INTERVAL. node-agent.example.toml explains all keys.

Exit codes:
  0  success; for `run`: it was told to stop and has kept or sent everything
  1  it failed; standard error says why
  2  wrong command line, configuration or rules file
  3  `doctor` only: something that this host has cannot be measured
  4  another agent uses the same state directory";

/// Measures what this machine really does, from the kernel's own counters, and reports it to a sweeper.
#[derive(Debug, Parser)]
#[command(name = "node-agent", version, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Arguments {
    /// Configuration file, in TOML.
    #[arg(long, global = true, value_name = "FILE", env = "NODE_AGENT_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure at each interval and report to the sweeper, until told to stop.
    Run,
    /// Measure one interval and print its heartbeat as JSON. Needs no sweeper, sends nothing, keeps nothing.
    Once {
        /// Length of the interval.
        #[arg(long, default_value = "1s", value_parser = interval)]
        interval: Duration,
        /// JSON as it would be sent, or one line for people.
        #[arg(long, value_enum, default_value_t = Output::Json)]
        output: Output,
    },
    /// Show workloads, pipelines and what the machine waits for, live in this terminal; ? shows the keys.
    ///
    /// It measures by itself, beside a running agent and with the same rights; it sends nothing and keeps nothing.
    Top {
        /// Time between two samples.
        #[arg(long, default_value = "1s", value_parser = interval)]
        interval: Duration,
    },
    /// Print one heartbeat per interval, a line each, until told to stop. Sends nothing, keeps nothing.
    Watch {
        /// Time between two heartbeats.
        #[arg(long, default_value = "1s", value_parser = interval)]
        interval: Duration,
        /// End after so many.
        #[arg(long, value_name = "NUMBER")]
        count: Option<u64>,
        /// A line for people, or JSON for programs, as `once` prints it.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
        /// The same as --output json.
        #[arg(long, conflicts_with = "output")]
        json: bool,
    },
    /// Say what will be measured on this host and what will not, each with its reason and its remedy.
    Doctor {
        /// A table for people or JSON for programs.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Throw the kill switch: agents on this host stop measuring and sending within a second, and stay so.
    Stop,
    /// Release the kill switch: they count again, from zero.
    Resume,
    /// Load the programs for the kernel and hand them over to the agent that asked for them.
    #[command(name = loader::COMMAND, hide = true)]
    LoadPrograms(kernel::Wanted),
    /// Ask kubelet, container runtimes and ECS's agent for names of containers, for the agent that started this.
    #[command(name = serve::COMMAND, hide = true)]
    RuntimeHelper(runtime::Options),
    /// Show or check rules: who is housekeeping, what workloads and tools are called (docs/rules.md).
    #[command(subcommand)]
    Rules(rules::Command),
}

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// People.
    Table,
    /// Programs.
    Json,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = config::parse_duration(text)?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(3600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("it is outside 100ms to 1h".to_owned()) }
}

/// What the command line takes, for manual pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Does what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    // One heap for all threads, which hardly ever allocate at the same time: what a start needs for a moment is there again for samples.
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two numbers, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        // What a sample of many processes needs for a moment goes back to the system: left to itself, the heap keeps it once it has been freed. Beside
        // 3,000 processes both come to 15.6 MB at most, in place of 21.7 MB.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
    let arguments = Arguments::parse();
    // It needs no settings, and its only listener is the agent that started it.
    if let Command::LoadPrograms(wanted) = &arguments.command {
        return if loader::load_and_hand_over(wanted).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    }
    if let Command::RuntimeHelper(options) = &arguments.command {
        return if serve::serve(options).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    }
    let surroundings = Surroundings::of_this_process();
    let done = config::load(arguments.config.as_deref(), &surroundings)
        .map_err(anyhow::Error::from)
        .and_then(|config| execute(&arguments.command, &config, &surroundings));
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

fn execute(command: &Command, config: &Config, surroundings: &Surroundings) -> anyhow::Result<u8> {
    // Who looks once wants the answer, not the story; a filter that was chosen is heard all the same.
    match command {
        Command::Run => log::start(config.log.as_deref().unwrap_or("info"))?,
        // Lines of a log would land between those of the screen.
        Command::Top { .. } => {}
        _ => log::start(config.log.as_deref().unwrap_or("warn"))?,
    }
    // Before there is a second thread: rights belong to threads, and none but this one is to have any.
    match command {
        Command::Run => {
            run::sweeper_url(config)?;
            let switch = Switch::of(config);
            if switch.thrown().is_some() && !waits_for_release(&switch)? {
                return Ok(SUCCESS);
            }
            let options = once::options(config, config.interval);
            let source = once::start(&options)?.obeying(switch, config.budget);
            in_runtime(async |stop| {
                run::halt::run(config, surroundings, options.rules, source, stop).await.map(|()| SUCCESS)
            })
        }
        Command::Once { interval, output } => {
            go_ahead(config)?;
            let source = once::start(&once::options(config, *interval))?;
            in_runtime(async |stop| once::once(source, *interval, *output, stop).await.map(|()| SUCCESS))
        }
        Command::Top { interval } => {
            // What goes wrong here is told in a line, before the screen is taken.
            top::has_a_terminal()?;
            go_ahead(config)?;
            let source = once::start(&once::options(config, *interval))?;
            in_runtime(async |stop| top::top(source, *interval, stop).await.map(|()| SUCCESS))
        }
        Command::Watch { interval, count, output, json } => {
            let output = if *json { Output::Json } else { *output };
            let options = watch::Options { interval: *interval, count: *count, output };
            go_ahead(config)?;
            let source = once::start(&once::options(config, *interval))?;
            in_runtime(async |stop| watch::watch(source, options, stop).await.map(|()| SUCCESS))
        }
        Command::Doctor { output } => {
            let source = go_ahead(config).and_then(|()| once::start(&once::options(config, config.interval)));
            in_runtime(async |stop| {
                let asking = doctor::doctor(config, surroundings, source, *output == Output::Json);
                let Some(complete) = stop.run_until_cancelled(asking).await else { return Ok(FAILED) };
                Ok(if complete? { SUCCESS } else { INCOMPLETE })
            })
        }
        Command::Stop => {
            let switch = Switch::of(config);
            let path = switch.throw().with_context(|| format!("making {}", config.stop_file.display()))?;
            terminal::say(&format!(
                "{}: agents on this host stop within a second",
                terminal::escaped(&path.to_string_lossy())
            ))?;
            Ok(SUCCESS)
        }
        Command::Resume => {
            let switch = Switch::of(config);
            let gone = switch.release().with_context(|| format!("taking {} away", config.stop_file.display()))?;
            terminal::say(if gone.is_empty() {
                "nothing was stopped"
            } else {
                "agents on this host go on within a second"
            })?;
            Ok(SUCCESS)
        }
        Command::LoadPrograms(_) | Command::RuntimeHelper(_) => Ok(USAGE),
        Command::Rules(command) => rules::run(command, config),
    }
}

/// Nobody measures while the kill switch is thrown.
fn go_ahead(config: &Config) -> anyhow::Result<()> {
    match Switch::of(config).thrown() {
        None => Ok(()),
        Some(path) => anyhow::bail!("collection is stopped by {}; `node-agent resume` lets it go on", path.display()),
    }
}

/// False if it was told to end meanwhile. Everything that takes rights comes afterwards.
fn waits_for_release(switch: &Switch) -> anyhow::Result<bool> {
    let mut released = false;
    tracing::warn!("the kill switch is thrown: nothing is measured and nothing is sent");
    in_runtime(async |stop| {
        tokio::select! {
            () = switch.until_released() => released = true,
            () = stop.cancelled() => {}
        }
        Ok(SUCCESS)
    })?;
    Ok(released)
}

/// Does `work` until its end, or until SIGTERM or Ctrl-C cancel the token.
fn in_runtime(work: impl AsyncFnOnce(CancellationToken) -> anyhow::Result<u8>) -> anyhow::Result<u8> {
    // One thread is enough to send; measuring and files have threads of their own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stop = CancellationToken::new();
    let done = runtime.block_on(async {
        tokio::spawn(stop_on_signal(stop.clone())?);
        work(stop).await
    });
    // A sample that hangs in the kernel must not keep the process from ending.
    runtime.shutdown_timeout(Duration::from_millis(500));
    match done {
        Err(error) if is_broken_pipe(&error) => Ok(SUCCESS),
        done => done,
    }
}

/// Whoever read the output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn stop_on_signal(stop: CancellationToken) -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        tracing::info!("told to end; a second signal ends it at once");
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: it gives the signal back to the kernel, which ends the process by it, whatever hangs in here.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    })
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let code = match (error.downcast_ref::<StateError>(), error.downcast_ref::<ConfigError>()) {
        (Some(StateError::InUse { .. }), _) => IN_USE,
        (_, Some(_)) => USAGE,
        _ if error.is::<top::NoTerminal>() => USAGE,
        _ => FAILED,
    };
    // If nobody reads standard error, the exit code has to do.
    let _ = terminal::say_error(&terminal::escaped(&format!("{error:#}")));
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed_and_its_help_documents_every_exit_code() {
        Arguments::command().debug_assert();
        for code in [SUCCESS, FAILED, USAGE, INCOMPLETE, IN_USE] {
            assert!(AFTER_HELP.contains(&format!("\n  {code}  ")), "{code}");
        }
    }

    #[test]
    fn an_interval_is_bounded() {
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        assert!(interval("0s").is_err() && interval("2h").is_err() && interval("later").is_err());
    }
}
