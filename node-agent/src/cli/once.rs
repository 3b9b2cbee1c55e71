//! `node-agent once`: one real interval, one heartbeat, on standard output.

use super::{Output, terminal};
use crate::{
    collect::{Collector, CollectorOptions, Mode},
    config::{CollectorChoice, Config},
    run::{self, clock::Ticker},
    source::{Readings, Source as _},
    view::{line::line, shape::View},
};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The collector that the configuration asks for.
#[must_use]
pub fn options(config: &Config, interval: Duration) -> CollectorOptions {
    let mode = match config.collector {
        CollectorChoice::Auto => Mode::Auto,
        CollectorChoice::Ebpf => Mode::Ebpf,
        CollectorChoice::Tracepoints => Mode::Tracepoints,
        CollectorChoice::Taskstats => Mode::Taskstats,
        CollectorChoice::Proc => Mode::Proc,
    };
    CollectorOptions {
        mode,
        interval,
        syscall_classes: config.syscall_classes,
        keep_ptrace: config.keep_ptrace,
        host_root: config.host_root.clone(),
        gpu: config.gpu.clone(),
        runtime: config.runtime.clone(),
        rules: config.rules(),
    }
}

/// Starts a collector, and gives up every right that it does not need from then on. Rights belong to threads: call this before there is
/// a second one.
///
/// # Errors
/// If nothing can be measured, or not in the way that was asked for.
pub fn start(options: &CollectorOptions) -> anyhow::Result<Readings> {
    let mut collector = Collector::start(options)?;
    collector.give_up_rights();
    Ok(Readings::new(collector))
}

/// Time that the reading has after `stop`: it is all that was asked for, and on an emulated machine with ten thousand names it takes some seconds.
const LAST_READING: Duration = Duration::from_secs(15);

/// Measures one interval and prints its heartbeat.
///
/// # Errors
/// If nobody reads the output, or after `stop` the reading or the reader hangs.
pub async fn once(
    mut source: Readings,
    interval: Duration,
    output: Output,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut ticker = Ticker::start(interval)?;
    tokio::select! {
        tick = ticker.tick() => tick?,
        // What was measured so far is a heartbeat as well.
        () = stop.cancelled() => {}
    }
    let say = move || -> anyhow::Result<()> {
        let heartbeat = source.next()?;
        let text = match output {
            Output::Json => terminal::escaped_json(&serde_json::to_string_pretty(&heartbeat)?).into_owned(),
            Output::Table => terminal::escaped(&line(&View::new(None, &heartbeat))).into_owned(),
        };
        Ok(terminal::say(&text)?)
    };
    tokio::select! {
        said = tokio::task::spawn_blocking(say) => said?,
        () = run::reading_is_too_late(&stop, LAST_READING) => anyhow::bail!("the reading hangs, or whoever reads the output does"),
    }
}
