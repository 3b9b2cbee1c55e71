//! Deletes a volume, once a snapshot of it is whole. The snapshot is made where nothing else stands in the way of the deletion, and not where that would be a dry run; it is found again by its tag,
//! so that a crash makes no second one. What EC2 says of both is read within the five seconds before the call leaves. The deletion is the one call that does harm.

use super::{
    ActError, Deadline, Executor,
    carry::{FRESH, WOULD_NOT},
    ec2::{self, Called, Clients},
    facts::{Decided, Facts},
    provider,
};
use crate::{
    inventory::{
        Volume,
        aws::{self, Accounts, PLAN_TAG},
    },
    store::{
        Action, StoreError,
        actions::{self, Told},
        moment::{self, Known},
    },
    sweep::was_unattached,
};
use guards::{
    Refusal,
    act::{OnVolume, Subject},
    action::{Event, State},
    may_delete,
};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceKey, plan::Action as Call, volume::SnapshotFacts};
use std::{sync::atomic::Ordering, time::Duration};

const GONE: &str = "EC2 does not know the volume any more";
/// So often a snapshot is read until it is whole; that takes minutes to hours.
const WATCH: Duration = Duration::from_secs(10);
/// After an answer was lost a snapshot that was made all the same is in every list by then.
const LISTED: Duration = Duration::from_secs(30);
/// For so long a volume may have been out of sight since its snapshot began. Whoever attached it, wrote to it and detached it meanwhile would have that in no copy.
const OUT_OF_SIGHT: SignedDuration = SignedDuration::from_mins(2);

/// What EC2 and the kept lists say of a volume now.
struct Now {
    volume: Volume,
    unused_since: Option<Timestamp>,
    snapshot: Option<SnapshotFacts>,
}

impl Now {
    /// Asks every guard. None if the plan or the volume cannot be put into their words: then nothing is done either.
    fn decide(&self, facts: &Facts<'_>, known: &Known) -> Option<Decided> {
        let volume = self.volume.delete_facts()?;
        let (unused_since, snapshot) = (self.unused_since, self.snapshot.as_ref());
        facts.decide(known, Subject::Volume(OnVolume { facts: &volume, unused_since, snapshot }))
    }
}

impl Executor {
    /// Has a snapshot made of a volume, and deletes the volume if nothing speaks against that once the snapshot is whole.
    pub(super) async fn delete_volume(&self, action: &mut Action) -> Result<(), ActError> {
        let on = action.resource.clone();
        let accounts = self.sessions.account(&on).await?;
        let client = match self.sessions.acting(&self.config, &on, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        if !self.prepare(action, &accounts, &client).await? {
            return Ok(());
        }
        self.tell(action, Event::Asked, Told::default()).await?;
        let Some((_, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        let deadline = Deadline::after(FRESH);
        // As of a machine, the second dry run opens the way that the call takes.
        let (now, dry_run) = futures::join!(self.volume(&accounts, action), ec2::dry_run(&client, call, &on.id));
        let Some(now) = now? else { return self.refuse(action, GONE).await };
        if !matches!(dry_run, Called::Accepted { .. }) {
            return self.refuse(action, WOULD_NOT).await;
        }
        let policy = self.policy()?;
        let facts = self.facts(&policy, &on).await?;
        self.decide(action, |known| now.decide(&facts, known)).await?;
        if action.state != State::Calling {
            return Ok(());
        }
        let called = ec2::call(&client, call, &on.id, deadline).await;
        self.called(action, called).await
    }

    /// Waits until a snapshot for this action is whole, and has one made where there is none. False if the action is over: something else stands in the way, or the snapshot failed.
    async fn prepare(&self, action: &mut Action, accounts: &Accounts, client: &Clients) -> Result<bool, ActError> {
        let on = action.resource.clone();
        let mut seen_at = None;
        // Whoever held it before may have had one made, which is not in the list yet.
        let mut made_at = match action.copied_at {
            Some(_) => Some(self.store.now().await?),
            None => None,
        };
        loop {
            let reads_at = self.store.now().await?;
            let Some(now) = self.held(action, self.volume(accounts, action)).await? else {
                self.refuse(action, GONE).await?;
                return Ok(false);
            };
            let read_at = self.store.now().await?;
            if let Some(snapshot) = &now.snapshot
                && was_out_of_sight(seen_at, snapshot.started_at, read_at)
            {
                let id = &snapshot.snapshot_id;
                let why = format!("nobody watched it without a break since its snapshot {id} began, which stays");
                self.refuse(action, why).await?;
                return Ok(false);
            }
            // Before everything else that is asked: what is written to it from its snapshot's begin on is in no copy, and where another guard lets the action wait, nobody would ask this one.
            let stands = match now.volume.delete_facts() {
                Some(facts) => may_delete(&facts).err().map(|refused| refused.to_string()),
                None => Some("what it rests on cannot be read".to_owned()),
            };
            if let (Some(snapshot), Some(why)) = (&now.snapshot, stands) {
                self.refuse(action, format!("{why}; {} was made for it, and stays", snapshot.snapshot_id)).await?;
                return Ok(false);
            }
            seen_at = Some(reads_at);
            let policy = self.policy()?;
            let facts = self.facts(&policy, &on).await?;
            let known = self.store.known(&action.plan).await?;
            let refused = now.decide(&facts, &known).map(|decided| decided.refused);
            match refused {
                Some(None) => return Ok(true),
                // It was made, and is not in the list yet.
                Some(Some(Refusal::NoSnapshot)) if made_at.is_some_and(|at| read_at.duration_since(at) < IN_LIST) => {
                    self.wait(action, WATCH).await?;
                }
                Some(Some(Refusal::NoSnapshot)) if facts.is_switched_on => {
                    // What another action has taken since, or another guard says, is asked of all guards again.
                    if self.takes_its_place(action, &now, &facts).await? {
                        if !self.snapshot(action, client).await? {
                            return Ok(false);
                        }
                        made_at = Some(self.store.now().await?);
                    }
                }
                // One list that failed is no reason to ask two people anew: it waits, and is asked of all guards again.
                Some(Some(Refusal::NotConfirmed)) if now.snapshot.is_some() => {
                    if self.is_too_late(action).await? {
                        return Ok(false);
                    }
                    self.store.note_action(action, &Refusal::NotConfirmed.to_string()).await?;
                    self.wait_beside_others(action).await?;
                }
                Some(Some(Refusal::SnapshotNotWhole { state: Some(state) }))
                    if is_on_its_way(&state) && facts.is_switched_on =>
                {
                    let id = now.snapshot.map(|snapshot| snapshot.snapshot_id).unwrap_or_default();
                    self.store.note_action(action, &format!("its snapshot {id} is {state}")).await?;
                    self.wait_beside_others(action).await?;
                }
                Some(Some(Refusal::NoSnapshot | Refusal::DryRunOnly)) => {
                    let why = format!("a dry run: nothing stands in the way but that {}", Refusal::DryRunOnly);
                    self.refuse(action, why).await?;
                    return Ok(false);
                }
                Some(Some(refused)) => {
                    let kept =
                        now.snapshot.map(|snapshot| format!("; {} was made for it, and stays", snapshot.snapshot_id));
                    self.refuse(action, format!("{refused}{}", kept.unwrap_or_default())).await?;
                    return Ok(false);
                }
                None => {
                    self.refuse(action, "what it rests on cannot be read").await?;
                    return Ok(false);
                }
            }
        }
    }

    /// Writes that a snapshot is made, in the transaction in which nothing stands in the way of the deletion but that there is none: a snapshot costs money, so that a day has no more of them than of
    /// deletions. False if something else does.
    async fn takes_its_place(&self, action: &mut Action, now: &Now, facts: &Facts<'_>) -> Result<bool, ActError> {
        self.witness.check(&self.store, &self.holder).await?;
        let transaction = self.store.begin_deciding().await?;
        let known = moment::known(&transaction, &action.plan).await?;
        let refused = now.decide(facts, &known).map(|decided| decided.refused);
        if refused != Some(Some(Refusal::NoSnapshot)) {
            return Ok(false);
        }
        if !actions::will_copy(&transaction, action).await? {
            return Err(ActError::TakenOver);
        }
        let commit = |source| StoreError::Database { doing: "commit that a snapshot is made", source };
        transaction.commit().await.map_err(commit)?;
        Ok(true)
    }

    /// Waits without taking the place of another action: that may be for hours, and an undo must not wait behind it.
    async fn wait_beside_others(&self, action: &Action) -> Result<(), ActError> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.wait(action, WATCH).await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Has a snapshot made. False if EC2 refuses, and then the action is over.
    async fn snapshot(&self, action: &mut Action, client: &Clients) -> Result<bool, ActError> {
        let plan = action.plan.to_string();
        let tags = [(PLAN_TAG, plan), ("cloud-sweeper:snapshot-for", action.asked_by.join(","))];
        match self.held(action, async { Ok(ec2::snapshot(client, &action.resource.id, &tags).await) }).await? {
            Called::Accepted { .. } => self.wait(action, WATCH).await?,
            Called::Rejected { why, .. } => {
                self.refuse(action, format!("EC2 made no snapshot of it: {why}")).await?;
                return Ok(false);
            }
            Called::Lost { why } => {
                self.store.note_action(action, &format!("whether its snapshot is made is not known: {why}")).await?;
                self.wait(action, LISTED).await?;
            }
            Called::NotSent => self.wait(action, WATCH).await?,
        }
        Ok(true)
    }

    /// A volume and its snapshot, as EC2 has them now; none if it does not know the volume any more.
    async fn volume(&self, accounts: &Accounts, action: &Action) -> Result<Option<Now>, ActError> {
        let (on, scope) = (&action.resource, provider::scope(&action.resource)?);
        let (volume, snapshot) = futures::join!(
            aws::volume(accounts, &scope, &on.id),
            aws::snapshot_for(accounts, &scope, &on.id, action.plan.as_str())
        );
        let provider = |why| ActError::Provider { what: "reading the volume and its snapshot", why };
        let (Some(volume), snapshot) = (volume.map_err(provider)?, snapshot.map_err(provider)?) else {
            return Ok(None);
        };
        let unused = self.store.lasting_since(on.kind.into(), std::slice::from_ref(on), was_unattached).await?;
        Ok(Some(Now { volume, unused_since: unused.get(on).copied(), snapshot }))
    }

    async fn facts<'a>(&self, policy: &'a guards::policy::Policy, on: &ResourceKey) -> Result<Facts<'a>, ActError> {
        let alike = self.store.count_of_account(on.kind.into(), &on.account).await?;
        Ok(Facts {
            policy,
            alike: u32::try_from(alike).unwrap_or(u32::MAX),
            // The sweeper's own disks are attached to its machines.
            is_own: Some(false),
            is_switched_on: self.is_switched_on(on, Call::DeleteVolume),
        })
    }

    /// Where a volume is, in EC2's word, or `deleted`; the same words as [`model::plan::Action::ends_in`].
    pub(super) async fn volume_state(&self, accounts: &Accounts, on: &ResourceKey) -> Result<String, ActError> {
        let read = aws::volume(accounts, &provider::scope(on)?, &on.id).await;
        let read = read.map_err(|why| ActError::Provider { what: "reading the volume", why })?;
        Ok(match read {
            None => "deleted".to_owned(),
            Some(volume) => {
                volume.state.map_or_else(|| "in a state that EC2 does not tell".to_owned(), |state| state.to_string())
            }
        })
    }
}

/// The same, as a span between two moments of the database's.
const IN_LIST: SignedDuration = SignedDuration::from_secs(30);

/// Whether a volume was out of sight for too long, which was last seen to be attached to nothing at `seen_at`: by whoever holds the action now, or else never since its snapshot began.
fn was_out_of_sight(seen_at: Option<Timestamp>, began: Option<Timestamp>, read_at: Timestamp) -> bool {
    seen_at.or(began).is_none_or(|since| read_at.duration_since(since) > OUT_OF_SIGHT)
}

fn is_on_its_way(state: &str) -> bool {
    state == "pending"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_watched_from_its_snapshots_begin_or_nothing_is_deleted() {
        let at = |second: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        // Whoever takes it over knows the snapshot alone.
        assert!(!was_out_of_sight(None, Some(at(0)), at(120)));
        assert!(was_out_of_sight(None, Some(at(0)), at(121)), "of an old one nobody knows what happened since");
        assert!(was_out_of_sight(None, None, at(0)), "nobody knows when it began");
        // Whoever watches knows when they last looked.
        assert!(!was_out_of_sight(Some(at(3_600)), Some(at(0)), at(3_720)));
        assert!(was_out_of_sight(Some(at(3_600)), Some(at(0)), at(3_721)));
    }
}
