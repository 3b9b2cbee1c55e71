//! The loop: measure at each tick, and whenever the sweeper asks for a sample at once, put into the spool, and beside it, in a task of its own, empty the spool.
//!
//! The first word to the sweeper and, a tenth of an interval later, the first tick come at a moment within the first interval that
//! belongs to the node, so that a fleet that starts in one second does not speak in one second.
//!
//! An end in good order (SIGTERM, Ctrl-C) takes one last sample, spools it, and gives the sweeper 2 s to take what waits. A sample that
//! takes longer than 2 s then (a kernel that hangs) is abandoned: nothing keeps the agent from ending.

pub mod clock;
pub mod halt;

use crate::{
    config::{Config, ConfigError, Surroundings},
    exporter::{Exporter, Node, Step, backoff::Backoff, client::Client, meter::Meter, queue::Queue},
    identity::{self, Identity, IdentityError, machine},
    metrics::{self, Exposition},
    rules::RulesStore,
    source::HeartbeatSource,
    spool::{Limits, MAX_IN_MEMORY, Spool},
    state::StateDir,
};
use anyhow::Context as _;
use heartbeat::wire;
use std::{path::Path, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The part of the first interval that joining may take, so that the first heartbeat finds its sequence known.
const JOIN_SHARE: f64 = 0.1;
/// Time that a sample has when the agent ends: a thousand times what it takes.
const LAST_SAMPLE: Duration = Duration::from_secs(2);
/// Time that the sweeper has to take the last heartbeats when the agent ends.
const LAST_SENDING: Duration = Duration::from_secs(2);

/// Measures and reports until `stop`, or until the source has paused, and gives the source back, unless a sample hangs in
/// it. It judges by the rules of `rules_store`, for which this fetches what the sweeper offers.
///
/// # Errors
/// If it cannot begin: no sweeper is configured, the state directory is not to be had.
pub async fn run<S: HeartbeatSource + 'static>(
    config: &Config,
    surroundings: &Surroundings,
    rules_store: Arc<RulesStore>,
    source: S,
    stop: CancellationToken,
) -> anyhow::Result<Option<S>> {
    let sweeper_url = sweeper_url(config)?;
    let state = Arc::new(StateDir::open(&config.state_dir)?);
    let settings = identity::Settings::new(config.identity, surroundings, &config.state_dir, machine::Keep::Yes);
    let random_waits = Backoff::for_interval(config.interval);
    let found = tokio::select! {
        found = settled_identity(&settings, random_waits.clone()) => found?,
        () = stop.cancelled() => return Ok(Some(source)),
    };
    let boot_id = machine::boot_id(Path::new("/")).context("reading the boot id")?;
    tracing::info!(node = %found.node_id, source = found.source, boot = %boot_id, sweeper_url, "this node");
    if sweeper_url.starts_with("http:") && !is_loopback(sweeper_url) {
        tracing::warn!("the sweeper is reached over plain http: whoever listens can read the node's token");
    }
    let limits = Limits { max_bytes: config.spool_max_bytes, max_age: config.spool_max_age };
    let spool = Spool::open(&state.spool(), &found.node_id, boot_id, limits)
        .with_context(|| format!("opening the spool in {}", state.spool().display()))?;
    let client = Client::new(sweeper_url).context("preparing TLS: does this host have root certificates?")?;
    let before_first_word = clock::share_of(&found.node_id, config.interval.mul_f64(1.0 - JOIN_SHARE));
    let before_first_tick = before_first_word + config.interval.mul_f64(JOIN_SHARE);
    let ticker =
        clock::Ticker::start_after(before_first_tick, config.interval).context("starting the interval clock")?;
    tracing::debug!(after_ms = before_first_word.as_millis(), "the sweeper hears from this node");

    let queue = Arc::new(Queue::new(spool));
    let meter = Arc::new(Meter::default());
    let node = Node {
        node_id: found.node_id,
        boot_id,
        hostname: heartbeat::text::visible_bytes(rustix::system::uname().nodename().to_bytes()),
        join_token: config.join_token.clone(),
        metadata: settings,
    };
    let mut exporter =
        Exporter::new(client, node, state, Arc::clone(&queue), Arc::clone(&meter), rules_store, random_waits);
    let measured = CancellationToken::new();
    let (exposition, _served) = match config.metrics_listen {
        Some(address) => {
            let listening = metrics::listen(address).await;
            let listening = listening.with_context(|| format!("opening metrics_listen = \"{address}\""))?;
            let exposition = Arc::new(Exposition::default());
            let served = metrics::Served::start(listening, Arc::clone(&exposition), Arc::clone(&meter));
            (Some(exposition), Some(served))
        }
        None => (None, None),
    };
    let outlets = Arc::new(Outlets { queue: Arc::clone(&queue), meter, exposition });
    let measuring = tokio::spawn(measure(source, ticker, outlets, stop));
    let until_measured = async {
        let ended = measuring.await;
        measured.cancel();
        ended
    };
    let too_late = async {
        measured.cancelled().await;
        tokio::time::sleep(LAST_SENDING).await;
    };
    // A request that is under way when the measuring ends is not abandoned: its answer may be there in a moment.
    let sending = async {
        tokio::select! {
            () = send(&mut exporter, &queue, &measured, before_first_word) => {}
            () = too_late => tracing::info!("the sweeper did not answer quickly"),
        }
    };
    let (ended, ()) = tokio::join!(until_measured, sending);
    let source = ended.context("the measuring task")??;
    tracing::info!(waiting = queue.stats().waiting, "ended; what waits is sent after the next start");
    Ok(source)
}

/// Returns once no sample is waited for any more, because `stop` was cancelled so long ago.
pub async fn sample_is_too_late(stop: &CancellationToken, timeout: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(timeout).await;
}

/// Where the sweeper is.
///
/// # Errors
/// If nobody has said so.
pub fn sweeper_url(config: &Config) -> Result<&str, ConfigError> {
    let missing = ConfigError::Missing { key: "sweeper_url", variable: "NODE_AGENT_SWEEPER_URL" };
    config.sweeper_url.as_deref().ok_or(missing)
}

fn is_loopback(url: &str) -> bool {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Asks until it is known which machine this is: a metadata service that fails must not turn the node into another one.
async fn settled_identity(settings: &identity::Settings, mut waits: Backoff) -> Result<Identity, IdentityError> {
    let mut said = false;
    loop {
        match identity::discover(settings).await {
            Err(error @ IdentityError::Metadata { .. }) => {
                let wait = waits.next(None, &mut rand::rng());
                if said {
                    tracing::debug!(%error, wait_ms = wait.as_millis(), "asking again");
                } else {
                    tracing::warn!(%error, "nothing is reported until this node knows who it is; asking again");
                    said = true;
                }
                tokio::time::sleep(wait).await;
            }
            settled => return settled,
        }
    }
}

/// Where a heartbeat goes.
struct Outlets {
    queue: Arc<Queue>,
    meter: Arc<Meter>,
    exposition: Option<Arc<Exposition>>,
}

impl Outlets {
    fn give_out(&self, mut heartbeat: wire::Heartbeat, answers: Option<String>) {
        heartbeat.answers = answers.unwrap_or_default();
        stamp(&mut heartbeat, &self.queue, &self.meter);
        if let Some(exposition) = &self.exposition {
            exposition.update(&heartbeat);
        }
        self.queue.push(heartbeat);
    }
}

async fn measure<S: HeartbeatSource + 'static>(
    mut source: S,
    mut ticker: clock::Ticker,
    outlets: Arc<Outlets>,
    stop: CancellationToken,
) -> anyhow::Result<Option<S>> {
    let mut failing = false;
    loop {
        let wait = ticker.until_worthwhile();
        let question = async {
            tokio::time::sleep(wait).await;
            outlets.queue.asked().await
        };
        let (last, question) = tokio::select! {
            biased;
            () = stop.cancelled() => (true, None),
            question = question => { ticker.sampled(); (false, Some(question)) }
            tick = ticker.tick() => { tick.context("waiting for the next interval")?; (false, None) }
        };
        // Whoever asks is answered, however little the agent may take: they do so seldom.
        if !last && question.is_none() && source.passes_over() {
            continue;
        }
        let outlets = Arc::clone(&outlets);
        let sample = tokio::task::spawn_blocking(move || {
            let outcome = source.next().map(|heartbeat| outlets.give_out(heartbeat, question));
            (source, outcome)
        });
        let (back, outcome) = tokio::select! {
            ended = sample => ended.context("reading the counters")?,
            () = sample_is_too_late(&stop, LAST_SAMPLE) => {
                tracing::warn!("a sample hangs; the agent ends without it");
                return Ok(None);
            }
        };
        source = back;
        match outcome {
            Err(error) if !failing => {
                failing = true;
                tracing::error!(error = format!("{error:#}"), "nothing could be measured; trying again each interval");
            }
            Ok(()) if failing => {
                failing = false;
                tracing::info!("measuring again");
            }
            _ => {}
        }
        if last || source.is_paused() {
            return Ok(Some(source));
        }
    }
}

/// Adds what only this side knows: the agent's own traffic and the state of the spool.
fn stamp(heartbeat: &mut wire::Heartbeat, queue: &Queue, meter: &Meter) {
    let bytes = meter.sample();
    if let Some(counters) = &mut heartbeat.counters {
        counters.own_network_received_bytes = Some(bytes.received);
        counters.own_network_sent_bytes = Some(bytes.sent);
    }
    let stats = queue.stats();
    let agent = heartbeat.agent.get_or_insert_default();
    agent.spooled_heartbeats = Some(stats.waiting);
    agent.spool_dropped_heartbeats = Some(stats.dropped_full.saturating_add(stats.dropped_old));
    if let Some(coverage) = &mut heartbeat.coverage {
        let trouble = queue.spool().trouble().map(str::to_owned);
        let status = if trouble.is_some() { wire::CapabilityStatus::Broken } else { wire::CapabilityStatus::Ok };
        let reason = trouble.map_or_else(String::new, |why| {
            format!("the disk takes no heartbeats ({why}); the newest {MAX_IN_MEMORY} wait in memory")
        });
        coverage.capabilities.push(wire::Capability { name: "spool".to_owned(), status: status.into(), reason });
        let lost = [
            ("spool_full", stats.dropped_full),
            ("spool_too_old", stats.dropped_old),
            ("spool_damaged", stats.damaged),
            ("spool_rejected", stats.rejected),
            ("spool_unjoined", stats.unjoined),
        ];
        let lost = lost.into_iter().filter(|(_, count)| *count > 0);
        coverage.drops.extend(lost.map(|(name, count)| wire::Drop { name: name.to_owned(), count }));
    }
}

/// Sends until everything is measured and sent, or, once everything is measured, until the sweeper does not take it.
async fn send(exporter: &mut Exporter, queue: &Queue, measured: &CancellationToken, before_first_word: Duration) {
    tokio::select! {
        () = tokio::time::sleep(before_first_word) => {}
        () = measured.cancelled() => {}
    }
    loop {
        let step = exporter.step().await;
        if step == Step::Progress {
            continue;
        }
        if measured.is_cancelled() {
            return;
        }
        let wait = async {
            match step {
                Step::Wait(wait) => tokio::time::sleep(wait).await,
                Step::Idle | Step::Progress => queue.grown().await,
            }
        };
        tokio::select! {
            () = wait => {}
            () = measured.cancelled() => {}
        }
    }
}

#[cfg(test)]
#[path = "run/tests.rs"]
mod tests;
