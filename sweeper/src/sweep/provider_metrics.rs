//! What a provider tells of machines beside their records: how busy it saw those that no agent reports from, what protects idle ones, and who started
//! them.
//!
//! Asked of a scope after its machines are listed and judged, since the former is asked of some of them only: it is billed. What was answered
//! is kept at once and not with the sweep: it is a fact of the past whoever ends the sweep, and it was paid for.

use super::{Context, Judged, Progress, SweepError, discover::Discovery, protection};
use crate::{
    inventory::{Inventory, Kind, LaunchedBy, Listing, Outcome, Scope, Usage, UsageAnswer, UsageWindow, aws},
    store::Store,
    work_unit::WorkUnit,
};
use jiff::{SignedDuration, Timestamp};
use model::ResourceKey;
use recommender::rules::stop;
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

/// What was told of one machine.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderFacts {
    /// How busy the provider saw it; none if nobody asked, it could not be read, or nothing was measured.
    pub(super) usage: Option<Usage>,
    /// What protects it, as far as it was asked for and could be read.
    pub(super) protection: stop::Protection,
    /// Who started it; none if nobody asked, or no event that was read says so.
    pub(super) launched_by: Option<LaunchedBy>,
}

/// Whether no agent reports from a machine: none ever did, or it is silent.
pub(super) fn is_blind(judged: &Judged) -> bool {
    judged.judgement.is_blind()
}

/// Asks what is to be asked of a work unit's machines, and says in the inventory's listings how it went.
pub(super) async fn read(
    context: &Context,
    discovery: &Discovery,
    unit: &WorkUnit,
    now: Timestamp,
    inventory: &mut Inventory,
    judged: &mut [Judged],
    progress: &dyn Progress,
) -> Result<(), SweepError> {
    // Google's is read for a project as a whole, with its inventory.
    let read: HashMap<&ResourceKey, &Usage> = inventory.usage.iter().map(|usage| (&usage.id, usage)).collect();
    for judged in judged.iter_mut().filter(|judged| is_blind(judged)) {
        let id = judged.subject.running().map(|instance| &instance.id);
        judged.provider.usage = id.and_then(|id| read.get(&id).copied().cloned());
    }
    let Some((accounts, scope)) = discovery.aws(unit) else { return Ok(()) };
    // Without the list of machines there is nothing to ask about.
    if !inventory.lists_machines(scope.provider, &scope.account, &scope.region) {
        return Ok(());
    }
    let at = At { accounts, scope, now };
    if let Some(read) = protection::read(context, accounts, scope, now, inventory, judged, progress).await? {
        inventory.listings.push(read);
    }
    if context.config.aws.cloudtrail {
        let read = launches(context, &at, inventory, judged, progress).await?;
        inventory.listings.push(read);
    }
    if context.config.aws.cloudwatch {
        let read = usage(context, &at, judged, progress).await?;
        inventory.listings.push(read);
    }
    Ok(())
}

/// Where is asked, and when.
struct At<'a> {
    accounts: &'a aws::Accounts,
    scope: &'a Scope,
    now: Timestamp,
}

fn before(now: Timestamp, length: Duration, times: i32) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX).saturating_mul(times);
    now.checked_sub(length).unwrap_or(Timestamp::MIN)
}

/// Asks about running machines that no agent reports from, each once in `aws.cloudwatch_every`.
async fn usage(
    context: &Context,
    at: &At<'_>,
    judged: &mut [Judged],
    progress: &dyn Progress,
) -> Result<Listing, SweepError> {
    let Context { store, config, .. } = context;
    let At { accounts, scope, now } = *at;
    let every = config.aws.cloudwatch_every;
    let blind = |judged: &Judged| Some(judged.subject.running().filter(|_| is_blind(judged))?.id.clone());
    let machines: Vec<ResourceKey> = judged.iter().filter_map(blind).collect();
    let mut known = kept(store, scope, before(now, every, 1)).await?;
    let missing: Vec<ResourceKey> = machines.iter().filter(|id| !known.contains_key(*id)).cloned().collect();
    let lookback = SignedDuration::try_from(config.aws.cloudwatch_lookback).unwrap_or(SignedDuration::MAX);
    let window = UsageWindow::hours_before(now, lookback);
    let measured = aws::usage(accounts, scope, &missing, &window, now, progress).await;
    if !measured.answers.is_empty() {
        store.put_usage_answers(scope, &measured.answers, before(now, every, 2)).await?;
    }
    known.extend(measured.answers.iter().map(|answer| (answer.id.clone(), answer.clone())));
    let mut listed = HashSet::new();
    for judged in judged.iter_mut() {
        let Some(answer) = blind(judged).and_then(|id| known.get(&id)) else { continue };
        judged.provider.usage.clone_from(&answer.usage);
        if answer.usage.is_some() {
            listed.insert(&answer.id);
        }
    }
    Ok(measured.listing(scope, listed.len()))
}

async fn kept(
    store: &Store,
    scope: &Scope,
    asked_after: Timestamp,
) -> Result<HashMap<ResourceKey, UsageAnswer>, SweepError> {
    let answers = store.usage_answers(scope, asked_after).await?;
    Ok(answers.into_iter().map(|answer| (answer.id.clone(), answer)).collect())
}

/// Reads the scope's trail on from where it was read before.
async fn launches(
    context: &Context,
    at: &At<'_>,
    inventory: &Inventory,
    judged: &mut [Judged],
    progress: &dyn Progress,
) -> Result<Listing, SweepError> {
    let At { accounts, scope, now } = *at;
    let machines = inventory.instances.iter().map(|instance| instance.id.id.clone());
    let listed: HashSet<String> = machines.collect();
    let (mut known, trail) = context.store.launches(scope).await?;
    let missing: HashSet<String> = listed.iter().filter(|id| !known.contains_key(*id)).cloned().collect();
    let read = if missing.is_empty() {
        Ok(None)
    } else {
        aws::launches(accounts, scope, &listed, &missing, trail, now, progress).await.map(Some)
    };
    let outcome = match read {
        // Whoever started each is known: nobody is asked.
        Ok(None) => Outcome::Complete { listed: listed.len() },
        Ok(Some(read)) => {
            let gone = known.keys().filter(|id| !listed.contains(*id)).cloned().collect();
            context.store.put_launches(scope, &read.found, read.trail, &gone).await?;
            for (id, by) in read.found {
                known.entry(id).or_insert(by);
            }
            Outcome::Complete { listed: known.keys().filter(|id| listed.contains(*id)).count() }
        }
        Err(why) => Outcome::Failed { what: aws::LOOKUP.to_owned(), why },
    };
    // What was read once stays so, whether or not more can be read now.
    for judged in judged {
        let instance = judged.subject.instance.as_ref();
        judged.provider.launched_by = instance.and_then(|instance| known.get(&instance.id.id).cloned());
    }
    Ok(Listing::of(scope, Kind::Launch, outcome))
}
