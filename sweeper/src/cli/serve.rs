//! `sweeper serve`.

use super::{channels, make_data_dir, migrate, open};
use crate::{
    actions::Executor,
    api, attribution,
    config::{Config, StoreConfig},
    digest::Sender,
    identity::evidence::{Settings, Verifier},
    ingest::Ingest,
    interactions::Interactions,
    outbox,
    rules::RulesStore,
    store::{Store, StoreError},
    sweep::{self, Context, Replica, Ticks, Timetable},
    telemetry,
    verdict::StatePolicy,
};
use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use std::{process::ExitCode, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// How often what is old is deleted, and the days of heartbeats that begin soon are made.
const CLEAN_EVERY: Duration = Duration::from_secs(600);

pub(super) async fn serve(config: Config) -> anyhow::Result<ExitCode> {
    make_data_dir(&config.data_dir)?;
    api::install_metrics();
    let channels = channels(&config)?;
    let timetable = Arc::new(Timetable::new(&config.sweep)?);
    let rules = config.ingest.rules_file.as_deref().map(RulesStore::open).transpose()?.map(Arc::new);
    let tls = config.api.tls().map(|(certificate, key)| api::Tls::open(certificate, key)).transpose()?.map(Arc::new);
    // As AWS's SDKs have it, which read the inventory.
    let set = |name| std::env::var(name).ok().filter(|url| !url.is_empty());
    let sts_endpoint = set("AWS_ENDPOINT_URL_STS").or_else(|| set("AWS_ENDPOINT_URL"));
    let settings = Settings { sts_endpoint, ..config.identity.verifier() };
    let verifier = Verifier::new(settings).context("`identity.aws_certificates` cannot be used")?;
    let store = open(&config).await?;
    migrate(&store).await?;
    api::establish(&store, &api::FLEET, &config.join_token_file()).await?;
    api::establish(&store, &api::OPERATOR, &config.operator_token_file()).await?;
    let listener = TcpListener::bind(config.api.listen)
        .await
        .with_context(|| format!("cannot listen on {} (`api.listen`)", config.api.listen))?;
    let digests = Sender::new(store.clone(), &config).context("digests cannot be sent")?;
    let context = Context {
        store: store.clone(),
        config: config.clone(),
        channels: channels.names(),
        price_lists: sweep::PriceLists::default(),
    };
    let acts_by = context.clone();
    let replica = Replica::new(context);
    let holder = replica.owner().to_owned();
    let interactions = Interactions::new(store.clone(), &config).context("buttons in Slack cannot be used")?;
    let interactions = interactions.map(Arc::new);
    tracing::info!(
        listen = %listener.local_addr()?,
        replica = replica.owner(),
        schedule = config.sweep.schedule,
        channels = ?channels.names(),
        buttons = interactions.is_some(),
        join_token_file = %config.join_token_file().display(),
        operator_token_file = %config.operator_token_file().display(),
        tls = tls.is_some(),
        "serving"
    );
    if tls.is_none() && !config.api.listen.ip().is_loopback() {
        tracing::warn!(
            "tokens and heartbeats cross the network in clear text, unless a proxy before this port ends TLS (`api.tls_certificate`)"
        );
    }

    let stop = CancellationToken::new();
    // Holds the latest ticks so far: what was missed while nobody served is caught up with now, once.
    let (tick, ticks) = timetable.channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(scheduled(Arc::clone(&timetable), tick, stop.clone()));
    tasks.spawn(sweeps(replica, ticks, stop.clone()));
    tasks.spawn(delivery(store.clone(), channels, config.clone(), stop.clone()));
    if let Some(sender) = digests {
        tasks.spawn(summing_up(sender, stop.clone()));
    }
    tasks.spawn(rolling_up(store.clone(), config.store.heartbeat_retention, stop.clone()));
    tasks.spawn(cleaning(store.clone(), config.store.clone(), stop.clone()));
    let costs = attribution::Settings::of(&config);
    tasks.spawn(adding_up(store.clone(), costs, config.store.rollup_retention, stop.clone()));
    if let Some(rules_store) = rules.clone() {
        tasks.spawn(watching(rules_store, stop.clone()));
    }
    let ingest = Ingest::new(store.clone(), config.ingest.clock_skew, StatePolicy::new(sweep::policy(&config)));
    let settings = api::Settings::of(&config);
    if let Some(interactions) = interactions.clone() {
        tasks.spawn(hearing(interactions, stop.clone()));
    }
    let state = api::AppState::new(store.clone(), ingest, rules, timetable, settings, verifier, interactions);
    if let Some(tls) = tls.clone() {
        tasks.spawn(watching_tls(tls, stop.clone()));
    }
    tasks.spawn(asking(state.questions(), store.clone(), stop.clone()));
    tasks.spawn(acting(Executor::new(acts_by, &holder, stop.clone())));
    tasks.spawn(served(listener, state, tls, stop.clone()));

    let ended = tokio::select! {
        signal = asked_to_stop() => { signal?; None }
        ended = tasks.join_next() => ended,
    };
    // A task that ends by itself ends the service: half a sweeper is worse than one that its supervisor restarts.
    let outcome = match ended {
        Some(ended) => ended.context("a task of the service was aborted").and_then(|result| result),
        None => Ok(()),
    };
    stop.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended.context("a task of the service was aborted")??;
    }
    outcome?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

async fn asked_to_stop() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt?,
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping: requests and messages under way are finished first");
    Ok(())
}

async fn scheduled(
    timetable: Arc<Timetable>,
    ticks: watch::Sender<Ticks>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    Ok(timetable.run(ticks, stop).await?)
}

async fn served(
    listener: TcpListener,
    state: api::AppState,
    tls: Option<Arc<api::Tls>>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    api::serve(listener, state, tls, async move { stop.cancelled().await }).await;
    Ok(())
}

async fn asking(questions: Arc<api::Questions>, store: Store, stop: CancellationToken) -> anyhow::Result<()> {
    questions.run(&store, stop).await;
    Ok(())
}

async fn hearing(interactions: Arc<Interactions>, stop: CancellationToken) -> anyhow::Result<()> {
    // An answer that is cut off was not written, and Slack is not told that it was.
    tokio::select! {
        () = stop.cancelled() => {}
        () = interactions.hear() => {}
    }
    Ok(())
}

async fn acting(executor: Executor) -> anyhow::Result<()> {
    executor.run().await;
    Ok(())
}

async fn watching_tls(tls: Arc<api::Tls>, stop: CancellationToken) -> anyhow::Result<()> {
    tls.watch(stop).await;
    Ok(())
}

async fn watching(rules_store: Arc<RulesStore>, stop: CancellationToken) -> anyhow::Result<()> {
    rules_store.watch(stop).await;
    Ok(())
}

async fn delivery(
    store: Store,
    channels: outbox::Channels,
    config: Config,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    outbox::run(store, channels, config.outbox, stop).await;
    Ok(())
}

async fn summing_up(sender: Sender, stop: CancellationToken) -> anyhow::Result<()> {
    sender.run(stop).await;
    Ok(())
}

async fn rolling_up(store: Store, heartbeat_retention: Duration, stop: CancellationToken) -> anyhow::Result<()> {
    telemetry::run(store, heartbeat_retention, stop).await;
    Ok(())
}

/// What machines cost on days that are over.
async fn adding_up(
    store: Store,
    settings: attribution::Settings,
    rollup_retention: Duration,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    attribution::kept::run(store, settings, rollup_retention, stop).await;
    Ok(())
}

/// One round after the other: at each tick, and whenever a lease on something due has ended.
async fn sweeps(
    mut replica: Replica,
    mut ticks: watch::Receiver<Ticks>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let serves = replica.serves();
    tokio::pin!(serves);
    loop {
        ticks.mark_unchanged();
        let wait = tokio::select! {
            // A scope is written in one transaction, so that a round may be left at any moment.
            () = stop.cancelled() => break,
            () = &mut serves => break,
            wait = replica.round(&ticks) => wait,
        };
        let again = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = &mut serves => break,
            changed = ticks.changed() => if changed.is_err() { break },
            () = again => {}
        }
    }
    replica.leave().await;
    Ok(())
}

async fn cleaning(store: Store, keep: StoreConfig, stop: CancellationToken) -> anyhow::Result<()> {
    loop {
        match store.now().await {
            Ok(now) => clean(&store, &keep, now).await,
            Err(error) => {
                tracing::error!(error = %crate::chain(&error), "what is past its retention is not known");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(CLEAN_EVERY) => {}
        }
    }
}

/// One round, at `now` by the database's clock.
async fn clean(store: &Store, keep: &StoreConfig, now: Timestamp) {
    let told = |what: &str, done: Result<u64, StoreError>| match done {
        Ok(0) => {}
        Ok(deleted) => tracing::info!(what, deleted, "deleted what is past its retention"),
        Err(error) => {
            tracing::error!(what, error = %crate::chain(&error), "what is past its retention cannot be deleted");
        }
    };
    let before = |retention: Duration| {
        let retention = SignedDuration::try_from(retention).unwrap_or(SignedDuration::MAX);
        now.checked_sub(retention).unwrap_or(Timestamp::MIN)
    };
    match store.make_heartbeat_days().await {
        Ok(0) => {}
        Ok(days) => tracing::info!(days, "made partitions for the heartbeats of coming days"),
        Err(error) => {
            tracing::error!(error = %crate::chain(&error), "partitions for the heartbeats of coming days cannot be made");
        }
    }
    let (heartbeats, rollups) = (before(keep.heartbeat_retention), before(keep.rollup_retention));
    told("days of heartbeats", store.drop_heartbeat_days_before(heartbeats).await);
    told("heartbeats", store.delete_heartbeats_before(heartbeats).await);
    told("states of nodes", store.delete_node_states_before(heartbeats).await);
    told("reports of sweeps", store.delete_sweeps_before(heartbeats).await);
    told("digests", store.delete_digests_before(rollups).await);
    told("expired tokens and challenges", store.delete_expired_tokens().await);
    told("old questions", store.delete_old_questions().await);
    told("protection of machines", store.delete_protection_before(before(sweep::PROTECTION_KEPT)).await);
    told("weeks of nodes", store.delete_weeks_before(before(sweep::WEEKS_KEPT)).await);
    told("catalogues", store.delete_catalogues_before(before(sweep::CATALOGUES_KEPT)).await);
    told("rollups", store.delete_rollups_before(rollups).await);
    told("versions of resources", store.delete_history_before(before(keep.history_retention)).await);
}
