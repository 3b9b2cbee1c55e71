//! What protects machines from being stopped: idle ones, and those that another type could be recommended for. Asked in turn, a share of them in each sweep, and kept.
//!
//! EC2 tells it of one machine and one attribute a call, so 50,000 idle machines are 100,000 calls, 104 minutes at the pace of lists. A sweep
//! begins no new machine after `aws.listing_timeout` (5 minutes: 2,400 machines); 50,000 are known after 21 sweeps. What the share did not reach is
//! *not known yet*, which is no failure of the sweep; a refusal is one. Nothing starves: see [`queue`].

use super::{Context, Progress, SweepError, catalogue, provider_metrics::At};
use crate::{
    findings::Finding,
    inventory::{
        Failure, Inventory, KeptProtection, Kind, Listing, Scope,
        aws::{self, Accounts},
    },
    snapshot::Machine,
    store::Store,
};
use jiff::{SignedDuration, Timestamp};
use model::machine::{self, Scheduler};
use model::{ResourceKey, Verdict};
use recommender::rules::stop;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};
use tokio::time::Instant;

/// An answer is not asked for again for so long. A plan is a text, and whoever acts reads again: an hour late is early enough for a text, and
/// keeps up to 14,400 idle machines of a scope as fresh as that with half of EC2's bucket.
const FRESH_FOR: SignedDuration = SignedDuration::from_hours(1);
/// An older answer counts for so long, as long as a plan that rests on it may be approved, where its turn to be read again has not come.
const GOOD_FOR: SignedDuration = stop::VALID_FOR;
/// Of a machine that is not idle, so that no plan but a recommendation rests on it, an answer is not asked for again for so long.
const FRESH_IF_BUSY: SignedDuration = SignedDuration::from_hours(12);
/// What was not to be asked about for so long is kept no longer: nothing rests on it any more.
pub const PROTECTION_KEPT: Duration = Duration::from_hours(48);
/// Of so many machines that are asked about one has an answer that is to be read again.
const KNOWN_EACH: usize = 4;
/// So many are asked about, then kept: 12 s at the pace of lists.
const KEPT_AT_ONCE: usize = 100;

/// Asks about the machines whose turn it is, and takes up what is known of all that are idle. None if there is nobody to ask about.
pub(super) async fn read(
    context: &Context,
    at: &At<'_>,
    inventory: &Inventory,
    machines: &mut [Machine],
    plannable: &Plannable,
    progress: &dyn Progress,
) -> Result<Option<Listing>, SweepError> {
    let (store, At { accounts, scope, now }) = (&context.store, *at);
    let ends_members = context.config.act.end_members;
    let idle: BTreeSet<String> =
        machines.iter().filter_map(|machine| plannable.actable(machine, ends_members)).collect();
    let watched = machines.iter().filter_map(|machine| Some(catalogue::candidate(machine, now)?.id.id.clone()));
    let mut busy: BTreeSet<String> = watched.filter(|id| !idle.contains(id)).collect();
    if idle.is_empty() && busy.is_empty() {
        return Ok(None);
    }
    let mut kept = store.protection(scope).await?;
    busy.retain(|id| !is_fresh_if_busy(kept.get(id), now));
    let listed: HashSet<&str> = inventory.instances.iter().map(|instance| instance.id.id.as_str()).collect();
    let gone: BTreeSet<String> = kept.keys().filter(|id| !listed.contains(id.as_str())).cloned().collect();
    let until = Instant::now() + context.config.aws.listing_timeout;
    let asking = Asking { store, accounts, scope, now, until, progress };
    let tried = asking.about(&idle, &mut kept, &gone).await?;
    // What is known of these no plan waits for: they come behind all idle ones, in the time that is left, and whatever becomes of it is no failure of the sweep.
    if !tried.is_over {
        let of_busy = asking.about(&busy, &mut kept, &BTreeSet::new()).await?;
        if let Some(why) = of_busy.why {
            let Scope { account, region, .. } = scope;
            tracing::warn!(account, region, %why, "what protects machines that work could not be read: no cheaper type is recommended for these");
        }
    }
    if idle.is_empty() {
        return Ok(None);
    }
    let mut known = 0;
    for machine in machines.iter_mut() {
        let Some(id) = plannable.actable(machine, ends_members) else { continue };
        let fact = tried.fact(&id, kept.get(&id), now);
        known += usize::from(matches!(fact, machine::Protection::On { .. } | machine::Protection::Off));
        machine.provider.protection = fact;
    }
    Ok(Some(Listing::of(scope, Kind::Protection, aws::AskedProtection::outcome(tried.why, known))))
}

/// Whom to ask, and until when.
struct Asking<'a> {
    store: &'a Store,
    accounts: &'a Accounts,
    scope: &'a Scope,
    now: Timestamp,
    until: Instant,
    progress: &'a dyn Progress,
}

impl Asking<'_> {
    /// Asks about those of these machines whose turn it is, takes the answers into what is kept, and forgets those that are `gone`.
    async fn about(
        &self,
        asked_about: &BTreeSet<String>,
        kept: &mut HashMap<String, KeptProtection>,
        gone: &BTreeSet<String>,
    ) -> Result<Tried, SweepError> {
        let &Self { store, accounts, scope, now, until, progress } = self;
        let mut tried = Tried::default();
        if asked_about.is_empty() && gone.is_empty() {
            return Ok(tried);
        }
        for asked_now in queue(asked_about, kept, now).chunks(KEPT_AT_ONCE) {
            if Instant::now() >= until || tried.is_over {
                break;
            }
            let asked = aws::protection(accounts, scope, asked_now, until, progress).await;
            store.put_protection(scope, &asked.answered, &asked.failed, now).await?;
            let answered = asked.answered.into_iter();
            kept.extend(answered.map(|(id, read)| (id, KeptProtection { queued_at: now, answer: Some((now, read)) })));
            tried.failed.extend(asked.failed);
            tried.is_over = asked.is_over;
            tried.why = asked.why.or(tried.why);
        }
        let is_new = |id: &&String| !kept.contains_key(*id) && !tried.failed.contains(*id);
        let new = asked_about.iter().filter(is_new).cloned().collect();
        store.queue_protection(scope, &new, gone, now).await?;
        Ok(tried)
    }
}

/// The machines of which a plan may be made if this sweep confirms them: those that were confirmed often enough before.
#[derive(Debug)]
pub(super) enum Plannable {
    /// One sweep is enough.
    All,
    /// These.
    Only(HashSet<ResourceKey>),
}

impl Plannable {
    pub(super) fn of(open: &[Finding], after_sweeps: u32) -> Self {
        if after_sweeps <= 1 {
            return Self::All;
        }
        // One that has a plan keeps it only if it can be made alike again, also by the first sweep behind one that could not confirm it.
        let is_near =
            |finding: &&Finding| finding.plan.is_some() || finding.confirmed_sweeps.saturating_add(1) >= after_sweeps;
        Self::Only(open.iter().filter(is_near).map(|finding| finding.resource.clone()).collect())
    }

    /// The instance id of an idle machine that nothing larger is known to have, or an Auto Scaling group alone where such may be ended, and whose finding is confirmed often enough with this sweep: of others
    /// no plan is made, whatever protects them. So what a sweep finds first is told at once, however many machines that are: nobody is asked about them.
    fn actable(&self, machine: &Machine, ends_members: bool) -> Option<String> {
        let may_be_planned = match self {
            Self::All => true,
            Self::Only(near) => near.contains(&machine.subject.id),
        };
        let is_idle = machine.judgement.verdict == Verdict::Idle && may_be_planned;
        let instance = machine.subject.running().filter(|_| is_idle)?;
        let id = &instance.id.id;
        let is_free = instance.autoscaling_group.is_none() || (ends_members && !instance.is_batchs());
        let is_alone =
            is_free && machine.subject.groups_are_known && machine.subject.schedulers.of(id) == Scheduler::NotListed;
        is_alone.then(|| id.clone())
    }
}

/// Whether nothing is to be asked about a machine that is not idle: it was answered lately.
fn is_fresh_if_busy(kept: Option<&KeptProtection>, now: Timestamp) -> bool {
    let age = |kept: &KeptProtection| Some(now.duration_since(kept.answer?.0));
    kept.and_then(age).is_some_and(|age| age < FRESH_IF_BUSY)
}

/// Who is to be asked about, in this order. Of each four the first three have no answer (any more), as long as there are such, and the fourth has one
/// that is not fresh; among either the one that waits longest comes first, and equals by their ids. So a crowd of new machines holds up no
/// answer that grows old, and whatever failed waits for all others.
fn queue(idle: &BTreeSet<String>, kept: &HashMap<String, KeptProtection>, now: Timestamp) -> Vec<String> {
    let (mut unknown, mut known) = (Vec::new(), Vec::new());
    for id in idle {
        match kept.get(id) {
            None => unknown.push((now, id)),
            Some(KeptProtection { queued_at, answer }) => {
                match answer.map(|(read_at, _)| now.duration_since(read_at)) {
                    Some(age) if age < FRESH_FOR => {}
                    Some(age) if age <= GOOD_FOR => known.push((*queued_at, id)),
                    _ => unknown.push((*queued_at, id)),
                }
            }
        }
    }
    // The last of each comes first.
    unknown.sort_unstable_by_key(|&waits| Reverse(waits));
    known.sort_unstable_by_key(|&waits| Reverse(waits));
    let mut queue = Vec::with_capacity(unknown.len() + known.len());
    loop {
        let of_known = queue.len() % KNOWN_EACH == KNOWN_EACH - 1;
        let next = if of_known { known.pop().or_else(|| unknown.pop()) } else { unknown.pop().or_else(|| known.pop()) };
        let Some((_, id)) = next else { return queue };
        queue.push(id.clone());
    }
}

/// How asking went.
#[derive(Debug, Default)]
struct Tried {
    failed: BTreeSet<String>,
    why: Option<Failure>,
    /// It ended early: all others would have been refused alike.
    is_over: bool,
}

impl Tried {
    /// What is known of a machine. What could not be read again may have changed, whatever was answered before: then it is not known.
    fn fact(&self, id: &str, kept: Option<&KeptProtection>, now: Timestamp) -> machine::Protection {
        if self.is_over || self.failed.contains(id) {
            return machine::Protection::Unknown;
        }
        let answer = kept.and_then(|kept| kept.answer).filter(|(read_at, _)| now.duration_since(*read_at) <= GOOD_FOR);
        answer.map_or(machine::Protection::NotYet, |(_, read)| read.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{FailureKind, Protection};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::constant(1_790_000_000, 0);
    const OPEN: Protection = Protection { stop: Some(false), termination: Some(false) };

    fn ago(minutes: i64) -> Timestamp {
        NOW - SignedDuration::from_mins(minutes)
    }

    fn read(minutes: i64) -> KeptProtection {
        KeptProtection { queued_at: ago(minutes), answer: Some((ago(minutes), OPEN)) }
    }

    fn waits(minutes: i64) -> KeptProtection {
        KeptProtection { queued_at: ago(minutes), answer: None }
    }

    fn order(machines: &[(&str, Option<KeptProtection>)]) -> Vec<String> {
        let idle = machines.iter().map(|(id, _)| (*id).to_owned()).collect();
        let kept = machines.iter().filter_map(|(id, kept)| Some(((*id).to_owned(), (*kept)?))).collect();
        queue(&idle, &kept, NOW)
    }

    #[test]
    fn whoever_has_no_answer_is_asked_about_first_and_whoever_has_a_fresh_one_not_at_all() {
        let machines = [
            ("fresh", Some(read(59))),
            ("new b", None),
            ("new a", None),
            ("old", Some(read(24 * 60))),
            ("older", Some(read(24 * 60 + 1))),
            ("an hour", Some(read(60))),
            ("waits", Some(waits(10))),
            ("failed", Some(KeptProtection { queued_at: ago(5), answer: Some((ago(120), OPEN)) })),
        ];
        // Of four one has an answer; when the others are all asked about, all of them have.
        let expected = ["older", "waits", "new a", "old", "new b", "an hour", "failed"];
        assert_eq!(order(&machines), expected);
    }

    #[test]
    fn what_was_not_reached_is_not_known_yet_and_what_was_refused_is_unknown() {
        let fact = |tried: &Tried, kept: Option<KeptProtection>| tried.fact("i-1", kept.as_ref(), NOW);
        let none = Tried::default();
        assert_eq!(fact(&none, None), machine::Protection::NotYet);
        assert_eq!(fact(&none, Some(waits(1))), machine::Protection::NotYet);
        assert_eq!(fact(&none, Some(read(24 * 60))), machine::Protection::Off);
        assert_eq!(fact(&none, Some(read(24 * 60 + 1))), machine::Protection::NotYet);
        let failed = Tried { failed: ["i-1".to_owned()].into(), ..Tried::default() };
        assert_eq!(fact(&failed, None), machine::Protection::Unknown);
        assert_eq!(fact(&failed, Some(read(90))), machine::Protection::Unknown, "it may be protected by now");
        let other = Tried { failed: ["i-2".to_owned()].into(), ..Tried::default() };
        assert_eq!(fact(&other, None), machine::Protection::NotYet);
        let why = Failure { kind: FailureKind::Denied, message: String::new() };
        let denied = Tried { is_over: true, why: Some(why), ..Tried::default() };
        assert_eq!(fact(&denied, None), machine::Protection::Unknown);
        assert_eq!(fact(&denied, Some(read(30))), machine::Protection::Unknown, "nobody may look any more");
        let silent = KeptProtection { queued_at: NOW, answer: Some((NOW, Protection::default())) };
        assert_eq!(fact(&none, Some(silent)), machine::Protection::Unknown, "EC2 did not say");
    }

    /// Sweeps of ten minutes, which ask about so many each: after how many of them a machine is asked about at the latest.
    fn longest_wait(idle: &BTreeSet<String>, share: usize, sweeps: i64, fails: impl Fn(&str) -> bool) -> i64 {
        let mut kept: HashMap<String, KeptProtection> = HashMap::new();
        let (mut asked_at, mut longest) = (HashMap::new(), 0);
        for sweep in 0..sweeps {
            let now = NOW + SignedDuration::from_mins(10 * sweep);
            let queue = queue(idle, &kept, now);
            for id in queue.iter().take(share) {
                let answer = if fails(id) { kept.get(id).and_then(|kept| kept.answer) } else { Some((now, OPEN)) };
                kept.insert(id.clone(), KeptProtection { queued_at: now, answer });
                longest = longest.max(sweep - asked_at.insert(id.clone(), sweep).unwrap_or(0));
            }
            for id in queue.into_iter().skip(share) {
                kept.entry(id).or_insert(KeptProtection { queued_at: now, answer: None });
            }
        }
        idle.iter().map(|id| sweeps - asked_at.get(id).copied().unwrap_or(0)).fold(longest, i64::max)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn nobody_starves_whatever_fails(
            machines in 1_usize..60, share in 4_usize..20, fails in prop::collection::hash_set(0_usize..60, 0..40),
        ) {
            let idle: BTreeSet<String> = (0..machines).map(|n| format!("i-{n:02}")).collect();
            let fails = |id: &str| id[2..].parse().is_ok_and(|n: usize| fails.contains(&n));
            // At worst all have an answer, and a crowd without one takes three of four; what is fresh is left alone for six sweeps.
            let round = i64::try_from(machines.div_ceil(share / KNOWN_EACH)).unwrap_or(i64::MAX);
            prop_assert!(longest_wait(&idle, share, 80, fails) <= round + 7);
        }
    }
}
