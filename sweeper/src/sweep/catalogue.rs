//! What the zones of a scope offer and what all of it costs: what recommendations of another type rest on. Asked once a day, and only of a scope with a machine
//! that could get one; kept at once, whoever ends the sweep.
//!
//! A day costs a scope some twenty calls of EC2, and a kind of machine (system, tenancy, licence) of a region ten of the price list. What cannot be
//! read is told by a warning, tried again by the next sweep, and fails no sweep: nothing else rests on it.

use super::{Context, SweepError, prices, provider_metrics::At};
use crate::{
    inventory::{Instance, Lifecycle, aws},
    pricing::{self, ASKED_EACH, PriceKey, PriceList, ReadPrice},
    snapshot::Machine,
};
use jiff::{SignedDuration, Timestamp};
use model::machine::Scheduler;
use recommender::demand::LEAST_DAYS;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What was last read so long ago is kept no longer: no recommendation rests on it any more.
pub const CATALOGUES_KEPT: Duration = Duration::from_secs(30 * 86_400);
/// Prices that are kept in one transaction: the write lock of SQLite is free in between.
const KEPT_AT_ONCE: usize = 200;

/// The instance of a machine that another type could be recommended for: it runs, was bought on demand, nothing larger has it, and its agent joined long ago enough.
pub(super) fn candidate(machine: &Machine, now: Timestamp) -> Option<&Instance> {
    let watched_for = now.duration_since(machine.subject.node.as_ref()?.joined_at);
    let instance = machine.subject.running()?;
    let is_alone = instance.autoscaling_group.is_none()
        && machine.subject.groups_are_known
        && machine.subject.schedulers.of(&instance.id.id) == Scheduler::NotListed;
    let is_watched = watched_for >= SignedDuration::from_hours(24 * i64::from(LEAST_DAYS));
    (is_watched && is_alone && instance.lifecycle == Lifecycle::OnDemand).then_some(instance)
}

/// Reads what is a day old.
pub(super) async fn read(context: &Context, at: Option<At<'_>>, machines: &[Machine]) -> Result<(), SweepError> {
    let Some(at) = at else { return Ok(()) };
    let candidates: Vec<&Instance> = machines.iter().filter_map(|machine| candidate(machine, at.now)).collect();
    if candidates.is_empty() {
        return Ok(());
    }
    offered(context, at).await?;
    let lists = candidates.iter().filter_map(|instance| Some(PriceKey::of(instance).ok()?.list()));
    price_lists(context, at.now, lists.collect()).await
}

async fn offered(context: &Context, At { accounts, scope, now }: At<'_>) -> Result<(), SweepError> {
    let read_at = context.store.catalogue_read_at(scope).await?;
    if read_at.is_some_and(|read_at| now.duration_since(read_at) < ASKED_EACH) {
        return Ok(());
    }
    match aws::offered(accounts, scope).await {
        Ok(offered) => context.store.put_catalogue(scope, &offered, now).await?,
        Err(why) => {
            let (_, account, region) = scope.words();
            tracing::warn!(account, region, %why, "what the zones offer cannot be read; what was last read counts for a week");
        }
    }
    Ok(())
}

async fn price_lists(context: &Context, now: Timestamp, mut lists: BTreeSet<PriceList>) -> Result<(), SweepError> {
    let source = context.config.pricing.source.as_str();
    let known = context.store.price_lists(source).await?;
    lists.retain(|list| known.get(list).is_none_or(|read_at| now.duration_since(*read_at) >= ASKED_EACH));
    if lists.is_empty() {
        return Ok(());
    }
    let read = match prices::options(&context.config, &context.price_lists.offer_file).await {
        Ok(options) => pricing::load_lists(&options, &lists).await,
        Err(why) => lists.into_iter().map(|list| (list, Err(why.clone()))).collect(),
    };
    for (list, read) in read {
        match read {
            Ok(prices) => keep(context, (source, &list), prices, now).await?,
            // Nobody wants to hear each hour that prices are switched off.
            Err(pricing::Unpriced::Off) => {}
            Err(why) => {
                tracing::warn!(%list, %why, "the prices of other types cannot be read; those that were last read count for 30 days");
            }
        }
    }
    Ok(())
}

async fn keep(
    context: &Context,
    (source, list): (&str, &PriceList),
    prices: BTreeMap<PriceKey, ReadPrice>,
    now: Timestamp,
) -> Result<(), SweepError> {
    let prices: Vec<_> = prices.into_iter().collect();
    for some in prices.chunks(KEPT_AT_ONCE) {
        context.store.put_prices(source, &some.iter().cloned().collect(), now).await?;
    }
    // A price that was read before and is not of this time is on the list no more.
    Ok(context.store.put_price_list(source, list, now).await?)
}
