//! Who started machines, from CloudTrail's events of `RunInstances`, and who submitted jobs, from those of `SubmitJob`; read where it is switched on.
//!
//! Needs `cloudtrail:LookupEvents`, which costs nothing. It allows two calls a second for each account and region, 50 events each,
//! and tells of 90 days. So never one call for a machine or a job: events are read newest first, once each, from the latest that
//! was read on; then, while there are listed ones that no event tells of, on from the oldest that was read. One sweep
//! reads at most 30 pages of each kind and scope (19 s); a busy account's 90 days take several sweeps. The event of an Auto Scaling
//! group's or a service's machine is a `RunInstances` too, in the name of whoever asked the service or of its own role.
//!
//! It refuses to guess: a machine that no event names was started by nobody knows whom. Machines of `CreateFleet` that have no
//! event of `RunInstances` are among these. An event is JSON within text, full of what callers chose: what is not of the
//! expected form is left out, and what is kept is cut and made visible.

use std::{
    collections::{BTreeMap, HashSet},
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use aws_sdk_cloudtrail::{
    primitives::DateTime,
    types::{Event, LookupAttribute, LookupAttributeKey},
};
use heartbeat::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Accounts, collect::list, place::Place};
use crate::inventory::{
    Failure, FailureKind, Launched, LaunchedBy, Progress, Scope, Trail,
    reader::{Api, Refused},
};

/// The call, as a policy names it.
pub const LOOKUP: &str = "cloudtrail:LookupEvents";
const EVENTS: Api = Api::cloudtrail(LOOKUP);
/// CloudTrail refuses more.
const PAGE_SIZE: i32 = 50;
/// Pages of one kind, scope and sweep.
const PAGES: u32 = 30;
/// CloudTrail forgets what is older.
const KEPT: SignedDuration = SignedDuration::from_hours(24 * 90);
/// An event may come so late: usually within 5 minutes, AWS says, and no bound.
const LATE: SignedDuration = SignedDuration::from_mins(30);
/// Bytes of one text; a role's session of the longest names has 220.
const LONGEST: usize = 300;

/// What was read of the trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launches {
    /// By the id of a machine or a job, of those that were asked about.
    pub found: BTreeMap<String, LaunchedBy>,
    /// What is read by now.
    pub trail: Trail,
}

/// Which machines or jobs are asked about.
#[derive(Clone, Debug)]
pub struct Sought {
    /// Whether they are machines or jobs.
    pub what: Launched,
    /// By id: `i-…`, or Batch's of a job that is no part of another.
    pub listed: HashSet<String>,
    /// Those among them that nothing is known of.
    pub missing: HashSet<String>,
    /// None of the missing ones was started earlier; none if that is not known of each.
    pub since: Option<Timestamp>,
}

/// Reads on where `trail` ends.
///
/// # Errors
/// The refusal that nothing helped against; then nothing was read.
pub async fn launches(
    accounts: &Accounts,
    scope: &Scope,
    sought: &Sought,
    trail: Option<Trail>,
    now: Timestamp,
    progress: &dyn Progress,
) -> Result<Launches, Failure> {
    let Some(place) = accounts.place(scope) else {
        let message = format!("account {} is not open here", scope.account);
        return Err(Failure { kind: FailureKind::Credentials, message });
    };
    let Sought { what, listed, missing, since } = sought;
    let told = |events| progress.page(scope, what.kind(), events);
    let kept_since = now.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
    // The provider's word of when it was, and the event's, are of two clocks.
    let since = since.and_then(|since| since.checked_sub(LATE).ok());
    let oldest = since.map_or(kept_since, |since| since.max(kept_since)).min(now);
    let read_until = trail.and_then(|trail| trail.until.checked_sub(LATE).ok());
    let start = read_until.map_or(oldest, |until| until.max(oldest)).min(now);
    let newest = read(&place, *what, (start, now), PAGES, &told).await?;
    let mut found = BTreeMap::new();
    take(&mut found, newest.told, listed);
    // What was read before is of no use if there is a hole in front of it.
    let before = trail.filter(|trail| start <= trail.until);
    let from = if newest.to_the_end { before.map_or(start, |trail| trail.from) } else { newest.oldest.unwrap_or(now) };
    let mut trail = Trail { from, until: now };
    let room = PAGES.saturating_sub(newest.pages);
    let still_missing = missing.iter().any(|id| !found.contains_key(id));
    if room > 0 && still_missing && trail.from > oldest {
        let older = read(&place, *what, (oldest, trail.from), room, &told).await?;
        take(&mut found, older.told, listed);
        trail.from = if older.to_the_end { oldest } else { older.oldest.unwrap_or(trail.from) };
    }
    Ok(Launches { found, trail })
}

/// The first event that names a machine or a job counts; there is one for each.
fn take(found: &mut BTreeMap<String, LaunchedBy>, told: Vec<Told>, listed: &HashSet<String>) {
    for Told { ids, by } in told {
        for id in ids.into_iter().filter(|id| listed.contains(id)) {
            found.entry(id).or_insert_with(|| by.clone());
        }
    }
}

/// A part of the trail.
struct Part {
    told: Vec<Told>,
    /// The time of the oldest event.
    oldest: Option<Timestamp>,
    to_the_end: bool,
    pages: u32,
}

async fn read(
    place: &Place,
    what: Launched,
    (from, until): (Timestamp, Timestamp),
    most: u32,
    heard: &(dyn Fn(usize) + Sync),
) -> Result<Part, Failure> {
    let (pages, cut) = (AtomicU32::new(0), AtomicBool::new(false));
    let events = place.pages(EVENTS, heard, |token| {
        // A list that begins anew is counted anew.
        if token.is_none() {
            pages.store(0, Relaxed);
        }
        let wanted =
            LookupAttribute::builder().attribute_key(LookupAttributeKey::EventName).attribute_value(call(what)).build();
        let request = place.cloudtrail().lookup_events().set_lookup_attributes(wanted.ok().map(|wanted| vec![wanted]));
        let request = request.start_time(DateTime::from_secs(from.as_second()));
        let request = request.end_time(DateTime::from_secs(until.as_second())).max_results(PAGE_SIZE);
        let (request, pages, cut) = (request.set_next_token(token), &pages, &cut);
        async move {
            let page = request.send().await?;
            let events = list(page.events, "events")?;
            let read = pages.fetch_add(1, Relaxed) + 1;
            let following = page.next_token.filter(|token| !token.is_empty());
            let enough = following.is_some() && read >= most;
            cut.store(enough, Relaxed);
            let events = events.iter().map(|event| (time(event), told(what, event))).collect();
            Ok::<_, Refused>((events, following.filter(|_| !enough)))
        }
    });
    let events: Vec<(Option<Timestamp>, Option<Told>)> = events.await?;
    let oldest = events.iter().filter_map(|(time, _)| *time).min();
    let told = events.into_iter().filter_map(|(_, told)| told).collect();
    Ok(Part { told, oldest, to_the_end: !cut.into_inner(), pages: pages.into_inner() })
}

/// The call that starts it.
const fn call(what: Launched) -> &'static str {
    match what {
        Launched::Machine => "RunInstances",
        Launched::Job => "SubmitJob",
    }
}

/// What one event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    ids: Vec<String>,
    by: LaunchedBy,
}

fn time(event: &Event) -> Option<Timestamp> {
    Timestamp::from_second(event.event_time()?.secs()).ok()
}

/// None if it started nothing, or cannot be read at all.
fn told(what: Launched, event: &Event) -> Option<Told> {
    let inside: Value = serde_json::from_str(event.cloud_trail_event().unwrap_or_default()).unwrap_or_default();
    if inside.get("errorCode").is_some_and(|code| !code.is_null()) {
        return None;
    }
    let ids = match what {
        Launched::Machine => machines(&inside, event),
        Launched::Job => {
            inside.pointer("/responseElements/jobId").and_then(Value::as_str).and_then(harmless).into_iter().collect()
        }
    };
    if ids.is_empty() {
        return None;
    }
    let who = &inside["userIdentity"];
    let word = |value: &Value| value.as_str().and_then(harmless);
    let from = word(&inside["sourceIPAddress"]).filter(|from| from.ends_with(".amazonaws.com"));
    let principal = ["arn", "userName", "principalId"].iter().find_map(|key| word(&who[*key]));
    let by = LaunchedBy {
        principal: principal.or_else(|| event.username().and_then(harmless)),
        via: word(&who["invokedBy"]).or(from),
        at: time(event).or_else(|| inside["eventTime"].as_str()?.parse().ok()),
        event: event.event_id().and_then(harmless),
    };
    Some(Told { ids, by })
}

/// The machines that the answer of the call names, or else the event.
fn machines(inside: &Value, event: &Event) -> Vec<String> {
    let items = inside.pointer("/responseElements/instancesSet/items").and_then(Value::as_array);
    let ids = items.into_iter().flatten().filter_map(|item| item.get("instanceId")?.as_str());
    let ids: Vec<_> = ids.filter_map(harmless).collect();
    if !ids.is_empty() {
        return ids;
    }
    // An answer that was too long is left out of the event; what it was about is not.
    let is_instance = |kind: Option<&str>| kind == Some("AWS::EC2::Instance");
    let resources = event.resources().iter().filter(|resource| is_instance(resource.resource_type()));
    resources.filter_map(|resource| harmless(resource.resource_name()?)).collect()
}

/// A stranger's text, bounded and visible; none if it is empty.
fn harmless(text: &str) -> Option<String> {
    let shown = text::visible(text::cut(text.trim(), LONGEST));
    (!shown.is_empty()).then(|| text::cut(&shown, LONGEST).to_owned())
}

#[cfg(test)]
mod tests;
