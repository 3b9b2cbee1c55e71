//! `node-agent once`: one real interval, one heartbeat, on standard output.

use super::terminal;
use crate::{
    collect::{Collector, CollectorOptions, Mode},
    config::{CollectorChoice, Config},
    run::clock::Ticker,
    source::{Readings, Source as _},
};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The collector that the configuration asks for.
#[must_use]
pub fn options(config: &Config, interval: Duration) -> CollectorOptions {
    let mode = match config.collector {
        CollectorChoice::Auto => Mode::Auto,
        CollectorChoice::Ebpf => Mode::Ebpf,
        CollectorChoice::Proc => Mode::Proc,
    };
    let (gpu, rules) = (config.gpu.clone(), config.rules());
    CollectorOptions { mode, interval, syscall_classes: config.syscall_classes, gpu, rules }
}

/// Starts a collector.
///
/// # Errors
/// If nothing can be measured, or not in the way that was asked for.
pub fn start(options: &CollectorOptions) -> anyhow::Result<Readings> {
    Ok(Readings::new(Collector::start(options)?))
}

/// Measures one interval and prints its heartbeat.
///
/// # Errors
/// If nothing can be measured or nobody reads the output.
pub async fn once(config: &Config, interval: Duration, stop: CancellationToken) -> anyhow::Result<()> {
    let options = options(config, interval);
    let mut source = tokio::task::spawn_blocking(move || start(&options)).await??;
    let mut ticker = Ticker::start(interval)?;
    tokio::select! {
        tick = ticker.tick() => tick?,
        // What was measured so far is a heartbeat as well.
        () = stop.cancelled() => {}
    }
    let heartbeat = tokio::task::spawn_blocking(move || source.next()).await??;
    terminal::say(&terminal::escaped_json(&serde_json::to_string_pretty(&heartbeat)?))?;
    Ok(())
}
