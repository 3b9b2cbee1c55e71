//! `node-agent once`: one real interval, one heartbeat, on standard output.

use super::{Output, terminal};
use crate::{
    collect::{Mode, Sampler, SamplerOptions},
    config::{Config, SourceChoice},
    host::runtime,
    own_pages,
    run::{self, clock::Ticker},
    source::{HeartbeatSource as _, SamplerSource},
    view::{line::line, shape::View},
};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The sampler that the configuration asks for.
#[must_use]
pub fn options(config: &Config, interval: Duration) -> SamplerOptions {
    let mode = match config.source {
        SourceChoice::Auto => Mode::Auto,
        SourceChoice::Ebpf => Mode::Ebpf,
        SourceChoice::Tracepoints => Mode::Tracepoints,
        SourceChoice::Taskstats => Mode::Taskstats,
        SourceChoice::Proc => Mode::Proc,
    };
    SamplerOptions {
        mode,
        interval,
        syscall_classes: config.syscall_classes,
        cpu_ppm_of_host: config.budget.cpu_ppm_of_host,
        keep_ptrace: config.keep_ptrace,
        host_root: config.host_root.clone(),
        gpu: config.gpu.clone(),
        runtime: runtime::Options { host_root: Some(config.host_root.clone()), ..config.runtime.clone() },
        rules: config.rules(),
    }
}

/// Starts a sampler, and drops every right that it does not need from then on. Rights belong to threads: call this before there is
/// a second one.
///
/// # Errors
/// If nothing can be measured, or not in the way that was asked for.
pub fn start(options: &SamplerOptions) -> anyhow::Result<SamplerSource> {
    let mut sampler = Sampler::start(options)?;
    sampler.drop_rights();
    if let Err(error) = own_pages::give_back() {
        tracing::debug!(%error, "what only the start needed stays mapped");
    }
    Ok(SamplerSource::new(sampler))
}

/// Time that the sample has after `stop`: it is all that was asked for, and on an emulated machine with ten thousand names it takes some seconds.
const LAST_SAMPLE: Duration = Duration::from_secs(15);

/// Measures one interval and prints its heartbeat.
///
/// # Errors
/// If nobody reads the output, or after `stop` the sample or the reader hangs.
pub async fn once(
    mut source: SamplerSource,
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
        () = run::sample_is_too_late(&stop, LAST_SAMPLE) => anyhow::bail!("the sample hangs, or whoever reads the output does"),
    }
}
