//! The run as long as the kill switch allows it, and again when it does.

use crate::{
    config::{Config, Surroundings},
    rules::RulesStore,
    source::SamplerSource,
    switch::Switch,
};
use anyhow::Context as _;
use std::{pin::pin, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Measures and reports until `stop`; while the switch is thrown it does neither, and begins anew afterwards.
///
/// # Errors
/// As [`super::run`], and if what was stopped can only be begun again by a new process.
pub async fn run(
    config: &Config,
    surroundings: &Surroundings,
    rules_store: Arc<RulesStore>,
    mut source: SamplerSource,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let switch = Switch::of(config);
    loop {
        let halt = stop.child_token();
        let mut running = pin!(super::run(config, surroundings, Arc::clone(&rules_store), source, halt.clone()));
        let back = tokio::select! {
            // Told to stop, or a sample saw the switch thrown, even if it is released by now: both begin anew below.
            ended = &mut running => ended?,
            file = switch.until_thrown() => {
                tracing::warn!(file = %file.display(), "collection stops: one last heartbeat, then silence");
                halt.cancel();
                running.await?
            }
        };
        if stop.is_cancelled() {
            return Ok(());
        }
        source = back.context("a sample hangs, and only a new process can detach the programs that it holds")?;
        source.pause();
        tracing::warn!("stopped: nothing is measured and nothing is sent");
        tokio::select! {
            () = switch.until_released() => {}
            () = stop.cancelled() => return Ok(()),
        }
        let resumed = tokio::task::spawn_blocking(move || source.resume().map(|()| source));
        source = resumed.await.context("resuming")??;
        tracing::info!("the kill switch is released: measuring again, from zero");
    }
}
