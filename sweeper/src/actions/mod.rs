//! Carries out what people have approved, and nothing else.
//!
//! An action goes through the states of [`guards::action`], each of which is in the database before what it announces is done: claimed, dry run, asking, calling,
//! awaiting. Whoever holds it renews its lease; a process that was not heard of for a lease is taken over, and what may have been called then is looked
//! into and not called again. Everything that can be read beforehand is; then the node is asked (of an address nobody can be: EC2's word on it is read), and from its answer on five seconds are left to read the machine once more, for the guards,
//! and the call, by the clock of the host, which goes on while a process stands still ([`Deadline`]).
//!
//! Where acting is not switched on, all of it is gone through but the call: a dry run.

mod address;
mod after;
mod announce;
mod batch;
mod carry;
mod compute_engine;
mod deadline;
mod ec2;
mod facts;
mod job;
mod machine;
mod member;
mod own;
mod provider;
mod record;
mod rehearsal;
mod relapse;
mod sessions;
mod undo;
mod volume;
mod watch;
mod witness;
mod words;

pub use deadline::Deadline;
pub use rehearsal::{Rehearsal, Terminates, rehearse, rehearse_jobs, rehearse_project};

use crate::{
    config::{Config, PolicyError},
    inventory::Failure,
    store::{Action, Direction, Store, StoreError, actions::NewAction},
    sweep::Context,
};
use guards::{act::Answer, policy::Policy};
use jiff::Timestamp;
use model::{
    ResourceKey,
    plan::{Action as Call, ContentHash},
};
use sessions::Sessions;
use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use witness::Witness;

/// So often it is looked for what people have approved.
const SEARCHED_EVERY: Duration = Duration::from_secs(2);
/// So often it is noted that a sweeper serves; a pause of twenty times that voids approvals.
const NOTE: Duration = Duration::from_secs(30);
/// For so long an action is held from each renewal on: longer than any call may still leave after it was written that it does.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// So many actions are under way at once; most of that time a machine is waited for.
const AT_ONCE: usize = 32;

/// Why an action cannot be carried on now. It stays as it is, and is taken up again when its lease has run out.
#[derive(Debug, thiserror::Error)]
enum ActError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The node cannot be judged.
    #[error(transparent)]
    Judging(#[from] crate::sweep::SweepError),
    /// Then nobody knows whether the database is the one of before.
    #[error("what was seen of the audit log cannot be read from {file}, or kept there", file = file.display())]
    Witness {
        file: PathBuf,
        #[source]
        why: std::io::Error,
    },
    /// Then nobody knows what came after it.
    #[error("its agent's answer is not found any more")]
    NoAnswer,
    /// Then nobody knows what became of machines like it.
    #[error("what its agent and its rules are cannot be read from the state of the node")]
    NoState,
    #[error("{what}: {why}")]
    Provider { what: &'static str, why: Failure },
    #[error("only what EC2 and Compute Engine have is acted on")]
    Elsewhere,
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the system gave no random bytes")]
    Random,
    /// Somebody else has it.
    #[error("another sweeper has taken it over")]
    TakenOver,
    /// It goes on after the restart.
    #[error("the sweeper is stopping")]
    Stopping,
}

/// Carries out what is approved.
#[derive(Debug)]
pub struct Executor {
    store: Store,
    config: Config,
    channels: Vec<&'static str>,
    holder: String,
    sessions: Sessions,
    witness: Witness,
    /// The listing by which each plan that was carried out was last held against what runs since.
    looked_at: Mutex<HashMap<ContentHash, Timestamp>>,
    /// So many of those under way wait for a snapshot and need no place.
    waiting: AtomicUsize,
    stop: CancellationToken,
}

impl Executor {
    /// One that calls itself so in leases and in the audit log.
    #[must_use]
    pub fn new(context: Context, holder: &str, stop: CancellationToken) -> Self {
        let Context { store, config, channels, .. } = context;
        let witness = Witness::new(config.data_dir.join("audit-head"));
        Self {
            sessions: Sessions::new(&config),
            store,
            config,
            channels,
            holder: holder.to_owned(),
            witness,
            looked_at: Mutex::default(),
            waiting: AtomicUsize::new(0),
            stop,
        }
    }

    /// Goes on until it is told to stop. A call that has left is waited for.
    pub async fn run(self) {
        let (executor, mut under_way) = (Arc::new(self), JoinSet::new());
        let mut noted: Option<Instant> = None;
        loop {
            if noted.is_none_or(|at| at.elapsed() >= NOTE) {
                noted = match executor.note().await {
                    Ok(()) => Some(Instant::now()),
                    Err(error) => {
                        tracing::error!(error = %crate::chain(&error), "whether the database was restored, or somebody has started again what was stopped, is not known; nothing is carried out");
                        None
                    }
                };
            }
            while under_way.try_join_next().is_some() {}
            let (mut wait, places) = match noted {
                Some(_) => {
                    let taken = under_way.len().saturating_sub(executor.waiting.load(Ordering::Relaxed));
                    (SEARCHED_EVERY, AT_ONCE.saturating_sub(taken))
                }
                None => (NOTE, 0),
            };
            for found in executor.find(places).await {
                match found {
                    Ok(action) => {
                        let executor = Arc::clone(&executor);
                        under_way.spawn(async move { executor.carry_out(action).await });
                    }
                    Err(error) => {
                        tracing::error!(error = %crate::chain(&error), "what is approved cannot be carried out now");
                        wait = NOTE;
                    }
                }
            }
            tokio::select! {
                () = executor.stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
        while under_way.join_next().await.is_some() {}
    }

    /// Notes that a sweeper serves, and what speaks against carrying anything out.
    async fn note(&self) -> Result<(), ActError> {
        self.witness.check(&self.store, &self.holder).await?;
        self.search_for_relapses().await
    }

    /// Claims what is approved, and takes over what nobody holds; so many at most.
    async fn find(&self, most: usize) -> Vec<Result<Action, ActError>> {
        if most == 0 {
            return Vec::new();
        }
        let mut found = match self.store.take_over_actions(&self.holder, LEASE, most).await {
            Ok(actions) => actions.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error.into())],
        };
        match self.store.approved_plans().await {
            Ok(approved) => {
                for hash in approved {
                    if found.len() >= most {
                        break;
                    }
                    found.extend(self.claim(&hash).await.transpose());
                }
            }
            Err(error) => found.push(Err(error.into())),
        }
        found
    }

    /// Claims a plan that enough people have approved.
    async fn claim(&self, hash: &ContentHash) -> Result<Option<Action>, ActError> {
        let known = self.store.known(hash).await?;
        let Some(plan) = known.plan.as_ref() else { return Ok(None) };
        if known.current_plan() != Some(hash) || known.says.iter().any(|say| say.answer == Answer::Deny) {
            return Ok(None);
        }
        let (says, needs) = self.policy()?.counted(&known.says, plan, known.tags_before.as_ref());
        let counts = says.iter().filter(|say| say.enrolled_since.is_some_and(|since| since <= say.at));
        let people: BTreeSet<&str> = counts.map(|say| say.approver.as_str()).collect();
        let given = u32::try_from(people.len()).unwrap_or(u32::MAX);
        if needs.is_none_or(|needs| given < needs) {
            return Ok(None);
        }
        let asked_by: Vec<String> = people.into_iter().map(str::to_owned).collect();
        let new = NewAction { plan, direction: Direction::Do, attempt: 1, asked_by: &asked_by };
        Ok(self.store.claim_action(new, &self.holder, LEASE).await?)
    }

    /// Whether somebody has switched on that this is done where a resource is.
    fn is_switched_on(&self, on: &ResourceKey, call: Call) -> bool {
        self.config.act.may_do(call, &on.account, &on.location)
    }

    fn policy(&self) -> Result<Policy, ActError> {
        Ok(self.config.approvals.policy()?.0)
    }
}
