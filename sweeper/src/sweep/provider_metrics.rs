//! What a provider tells of machines and jobs beside their records: how busy it saw those that no agent reports from, what protects idle ones, and who started
//! them.
//!
//! Asked of a scope after its machines are listed and judged, since the former is asked of some of them only: it is billed. What was answered
//! is kept at once and not with the sweep: it is a fact of the past whoever ends the sweep, and it was paid for.

use super::{
    Context, Progress, SweepError,
    protection::{self, Plannable},
};
use crate::{
    inventory::{
        Inventory, Launched, LaunchedBy, Listing, Outcome, Scope, Usage, UsageAnswer, UsageWindow,
        aws::{self, Sought},
    },
    snapshot::Machine,
    store::Store,
};
use jiff::{SignedDuration, Timestamp};
use model::ResourceKey;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

/// Who submitted jobs, by the ids of what was submitted.
pub(super) type Submissions = BTreeMap<String, LaunchedBy>;

/// Asks what is to be asked of a work unit's machines and jobs, and says in the inventory's listings how it went.
pub(super) async fn read(
    context: &Context,
    at: Option<At<'_>>,
    inventory: &mut Inventory,
    machines: &mut [Machine],
    plannable: &Plannable,
    progress: &dyn Progress,
) -> Result<Submissions, SweepError> {
    // Google's is read for a project as a whole, with its inventory.
    let read: HashMap<&ResourceKey, &Usage> = inventory.usage.iter().map(|usage| (&usage.id, usage)).collect();
    for machine in machines.iter_mut().filter(|machine| machine.is_blind()) {
        let id = machine.subject.running().map(|instance| &instance.id);
        machine.provider.usage = id.and_then(|id| read.get(&id).copied().cloned());
    }
    let Some(at) = at else { return Ok(Submissions::new()) };
    let submissions = if context.config.aws.cloudtrail {
        submissions(context, &at, inventory, progress).await?
    } else {
        Submissions::new()
    };
    let scope = at.scope;
    // Without the list of machines there is nothing to ask about.
    if !inventory.lists_machines(scope.provider, &scope.account, &scope.region) {
        return Ok(submissions);
    }
    if let Some(read) = protection::read(context, &at, inventory, machines, plannable, progress).await? {
        inventory.listings.push(read);
    }
    if context.config.aws.cloudtrail {
        let listed = inventory.instances.iter().map(|instance| instance.id.id.clone()).collect();
        let (known, read) = launches(context, &at, Launched::Machine, (listed, |_| None), progress).await?;
        inventory.listings.push(read);
        for machine in machines.iter_mut() {
            let instance = machine.subject.instance.as_ref();
            machine.provider.launched_by = instance.and_then(|instance| known.get(&instance.id.id).cloned());
        }
    }
    if context.config.aws.cloudwatch {
        let read = usage(context, &at, machines, progress).await?;
        inventory.listings.push(read);
    }
    Ok(submissions)
}

/// Where is asked, and when.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) accounts: &'a aws::Accounts,
    pub(super) scope: &'a Scope,
    pub(super) now: Timestamp,
}

fn before(now: Timestamp, length: Duration, times: i32) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX).saturating_mul(times);
    now.checked_sub(length).unwrap_or(Timestamp::MIN)
}

/// Asks about running machines that no agent reports from, each once in `aws.cloudwatch_every`.
async fn usage(
    context: &Context,
    at: &At<'_>,
    machines: &mut [Machine],
    progress: &dyn Progress,
) -> Result<Listing, SweepError> {
    let Context { store, config, .. } = context;
    let At { accounts, scope, now } = *at;
    let every = config.aws.cloudwatch_every;
    let blind = |machine: &Machine| Some(machine.subject.running().filter(|_| machine.is_blind())?.id.clone());
    let of_blind: Vec<ResourceKey> = machines.iter().filter_map(blind).collect();
    let mut known = kept(store, scope, before(now, every, 1)).await?;
    let missing: Vec<ResourceKey> = of_blind.iter().filter(|id| !known.contains_key(*id)).cloned().collect();
    let lookback = SignedDuration::try_from(config.aws.cloudwatch_lookback).unwrap_or(SignedDuration::MAX);
    let window = UsageWindow::hours_before(now, lookback);
    let measured = aws::usage(accounts, scope, &missing, &window, now, progress).await;
    if !measured.answers.is_empty() {
        store.put_usage_answers(scope, &measured.answers, before(now, every, 2)).await?;
    }
    known.extend(measured.answers.iter().map(|answer| (answer.id.clone(), answer.clone())));
    let mut listed = HashSet::new();
    for machine in machines.iter_mut() {
        let Some(answer) = blind(machine).and_then(|id| known.get(&id)) else { continue };
        machine.provider.usage.clone_from(&answer.usage);
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

/// Asks who submitted the jobs that are not over.
async fn submissions(
    context: &Context,
    at: &At<'_>,
    inventory: &mut Inventory,
    progress: &dyn Progress,
) -> Result<Submissions, SweepError> {
    let live = inventory.batch_jobs.iter().filter(|job| !job.is_over());
    let created_at: HashMap<String, Option<Timestamp>> =
        live.map(|job| (job.submitted_as().to_owned(), job.created_at)).collect();
    let listed: HashSet<String> = created_at.keys().cloned().collect();
    let since = |missing: &HashSet<String>| {
        let mut times = missing.iter().map(|id| created_at.get(id).copied().flatten());
        times.try_fold(at.now, |oldest, time| Some(oldest.min(time?)))
    };
    let (known, read) = launches(context, at, Launched::Job, (listed, since), progress).await?;
    inventory.listings.push(read);
    Ok(known)
}

/// Reads the scope's trail on from where it was read before, for what is listed. `since` says since when at most the missing ones have been there.
async fn launches(
    context: &Context,
    at: &At<'_>,
    what: Launched,
    (listed, since): (HashSet<String>, impl Fn(&HashSet<String>) -> Option<Timestamp>),
    progress: &dyn Progress,
) -> Result<(BTreeMap<String, LaunchedBy>, Listing), SweepError> {
    let At { accounts, scope, now } = *at;
    let (mut known, trail) = context.store.launches(scope, what).await?;
    let missing: HashSet<String> = listed.iter().filter(|id| !known.contains_key(*id)).cloned().collect();
    let read = if missing.is_empty() {
        Ok(None)
    } else {
        let sought = Sought { what, since: since(&missing), listed: listed.clone(), missing };
        aws::launches(accounts, scope, &sought, trail, now, progress).await.map(Some)
    };
    let outcome = match read {
        // Whoever started each is known: nobody is asked.
        Ok(None) => Outcome::Complete { listed: listed.len() },
        Ok(Some(read)) => {
            let gone = known.keys().filter(|id| !listed.contains(*id)).cloned().collect();
            context.store.put_launches(scope, what, &read.found, read.trail, &gone).await?;
            for (id, by) in read.found {
                known.entry(id).or_insert(by);
            }
            Outcome::Complete { listed: known.keys().filter(|id| listed.contains(*id)).count() }
        }
        Err(why) => Outcome::Failed { what: aws::LOOKUP.to_owned(), why },
    };
    // What was read once stays so, whether or not more can be read now.
    known.retain(|id, _| listed.contains(id));
    Ok((known, Listing::of(scope, what.kind(), outcome)))
}
