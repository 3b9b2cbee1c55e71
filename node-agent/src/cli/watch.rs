//! `node-agent watch`: one heartbeat per interval on standard output, as JSON for programs or as a line for people.
//!
//! It has a sampler of its own, beside that of a running agent; it sends nothing and keeps nothing. Each line is flushed. Its end
//! is quiet, whether it is told to stop or its reader goes away.

use super::{Output, terminal};
use crate::{
    run::clock::Ticker,
    source::{HeartbeatSource as _, SamplerSource},
    view::{line::line, shape::View},
};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time between two heartbeats.
    pub interval: Duration,
    /// End after so many; `None` is never.
    pub count: Option<u64>,
    /// JSON, or lines for people.
    pub output: Output,
}

/// Watches until `stop`, until the count is reached, or until nobody reads any more.
///
/// # Errors
/// If nothing can be measured or nobody reads the output.
pub async fn watch(mut source: SamplerSource, options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    let mut ticker = Ticker::start(options.interval)?;
    let mut last = None;
    let mut left = options.count.unwrap_or(u64::MAX);
    while left > 0 {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            tick = ticker.tick() => tick?,
        }
        let sample = tokio::task::spawn_blocking(move || {
            let heartbeat = source.next();
            (source, heartbeat)
        });
        let (back, heartbeat) = tokio::select! {
            ended = sample => ended?,
            () = stop.cancelled() => return Ok(()),
        };
        source = back;
        let heartbeat = heartbeat?;
        let text = match options.output {
            Output::Json => terminal::escaped_json(&serde_json::to_string(&heartbeat)?).into_owned(),
            Output::Table => terminal::escaped(&line(&View::new(last.as_ref(), &heartbeat))).into_owned(),
        };
        // A reader that stalls keeps the write waiting, and must not keep the end waiting as well.
        let written = tokio::task::spawn_blocking(move || terminal::say(&text));
        tokio::select! {
            written = written => written??,
            () = stop.cancelled() => return Ok(()),
        }
        last = Some(heartbeat);
        left -= 1;
    }
    Ok(())
}
