//! Group commit: requests hand what they bring to one writer, which stores what has gathered in one transaction, and answers them all.
//!
//! Under load a group is awaited for up to [`LINGER`], so that a database's round trips and its sync are shared by a hundred senders; a sender
//! that comes alone does not wait. The next group gathers, and on PostgreSQL is committed, while one is: each transaction locks its nodes in the order of
//! their ids. A group that fails is stored one by one, so that nobody fails for what another has sent.

use crate::{
    store::{Delivered, Delivery, Store, StoreError},
    verdict::StatePolicy,
};
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};

/// How many senders shared a transaction, among the metrics.
pub(crate) const GROUP_SIZE: &str = "heartbeat_group_size";
/// Most senders of one group.
const MAX_GROUP: usize = 512;
/// Heartbeats that are committed at once, but for those of a single envelope: after an outage each sender brings a backlog of hundreds, and a transaction
/// of a hundred thousand would take longer than anybody waits.
const MAX_HEARTBEATS: usize = 4_096;
/// How long a group is awaited once senders come in company. An agent sends every 30 s and waits for no answer.
const LINGER: Duration = Duration::from_millis(100);
/// Nobody came for so long: nobody will who waits for this group's answers.
const QUIET: Duration = Duration::from_millis(4);

/// Why a delivery is not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStored {
    /// The database refused it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database did not answer for others before it, and it was not tried.
    #[error("The database does not answer; send them again later.")]
    NotTried,
    /// The writer has ended.
    #[error("The sweeper is shutting down.")]
    Closing,
}

type Answer = oneshot::Sender<Result<Delivered, NotStored>>;

/// Where deliveries are handed in. The writer ends with the last of these.
#[derive(Debug)]
pub(super) struct Group {
    queue: mpsc::Sender<(Delivery, Answer)>,
}

impl Group {
    /// Starts the writer.
    pub(super) fn over(store: Store, state_policy: Arc<StatePolicy>) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_GROUP);
        tokio::spawn(write(Committing { store, state_policy }, waiting));
        Self { queue }
    }

    /// Stores a delivery together with those of others. It is stored even if nobody waits for the answer any more.
    pub(super) async fn store(&self, delivery: Delivery) -> Result<Delivered, NotStored> {
        let (answer, answered) = oneshot::channel();
        self.queue.send((delivery, answer)).await.map_err(|_| NotStored::Closing)?;
        answered.await.map_err(|_| NotStored::NotTried)?
    }
}

/// A database that has not answered by then will not before the senders' own time is over.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(20);

/// What is needed to commit.
#[derive(Clone)]
struct Committing {
    store: Store,
    state_policy: Arc<StatePolicy>,
}

/// So many groups are committed at once: with one, 12,100 heartbeats a second were taken in where two took in 14,900, and three no more than that
/// (docs/journal/2026-11-25-ingest-again.md). SQLite has one writer.
fn at_once(store: &Store) -> usize {
    if store.has_one_writer() { 1 } else { 2 }
}

async fn write(committing: Committing, mut waiting: mpsc::Receiver<(Delivery, Answer)>) {
    let commits = Arc::new(Semaphore::new(at_once(&committing.store)));
    let mut came_in_company = false;
    loop {
        let mut group = Vec::new();
        if waiting.recv_many(&mut group, MAX_GROUP).await == 0 {
            return;
        }
        if came_in_company || group.len() > 1 {
            gather(&mut waiting, &mut group).await;
        }
        came_in_company = group.len() > 1;
        while !group.is_empty() {
            // It is never closed.
            let Ok(commit) = Arc::clone(&commits).acquire_owned().await else { return };
            // Whoever came while others were committed goes with it.
            while group.len() < MAX_GROUP
                && let Ok(next) = waiting.try_recv()
            {
                group.push(next);
            }
            let rest = group.split_off(fitting(&group));
            let (committing, group) = (committing.clone(), std::mem::replace(&mut group, rest));
            metrics::histogram!(GROUP_SIZE).record(f64::from(u32::try_from(group.len()).unwrap_or(u32::MAX)));
            tokio::spawn(async move { committing.attempt(group, commit).await });
        }
    }
}

/// How many of them are committed at once; at least one.
fn fitting(group: &[(Delivery, Answer)]) -> usize {
    let mut heartbeats = 0;
    let fits = group.iter().take_while(|(delivery, _)| {
        heartbeats += delivery.heartbeats();
        heartbeats <= MAX_HEARTBEATS
    });
    fits.count().max(1)
}

/// Waits for more, until nobody comes any more or the group is large enough.
async fn gather(waiting: &mut mpsc::Receiver<(Delivery, Answer)>, group: &mut Vec<(Delivery, Answer)>) {
    let until = Instant::now() + LINGER;
    while group.len() < MAX_GROUP && Instant::now() < until {
        let room = MAX_GROUP - group.len();
        let quiet = until.min(Instant::now() + QUIET);
        match timeout_at(quiet, waiting.recv_many(group, room)).await {
            Ok(came) if came > 0 => {}
            _ => return,
        }
    }
}

impl Committing {
    /// Commits a group in a task of its own: whatever happens to it, the next one is stored.
    async fn attempt(&self, group: Vec<(Delivery, Answer)>, commit: OwnedSemaphorePermit) {
        let this = self.clone();
        let committed = tokio::spawn(async move { timeout(COMMIT_TIMEOUT, this.commit(group)).await });
        match committed.await {
            Ok(Ok(())) => {}
            // Whoever waited learns that nobody answers, and sends again what may be stored by now.
            Ok(Err(_)) => tracing::error!("the database has not answered for {} s", COMMIT_TIMEOUT.as_secs()),
            Err(error) => tracing::error!(%error, "a group was left half way; nothing of it is stored"),
        }
        drop(commit);
    }

    async fn commit(&self, group: Vec<(Delivery, Answer)>) {
        let (deliveries, answers): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let stored = self.store.commit(&deliveries, &self.state_policy, Timestamp::now()).await;
        match (stored, answers.len()) {
            (Ok(stored), _) => answers.into_iter().zip(stored).for_each(|(answer, stored)| tell(answer, Ok(stored))),
            (Err(error), 1) => {
                if let Some(answer) = answers.into_iter().next() {
                    tell(answer, Err(error.into()));
                }
            }
            (Err(error), senders) if error.is_refusal() => {
                let error = crate::chain(&error);
                tracing::warn!(senders, error = %error, "a group is not stored; its senders are tried one by one");
                self.one_by_one(deliveries, answers).await;
            }
            // To try again would only make them wait longer.
            (Err(error), senders) => {
                tracing::error!(senders, error = %crate::chain(&error), "the database does not answer; a group is not stored");
                answers.into_iter().for_each(|answer| tell(answer, Err(NotStored::NotTried)));
            }
        }
    }

    /// Until the database refuses no more, but is away.
    async fn one_by_one(&self, deliveries: Vec<Delivery>, answers: Vec<Answer>) {
        let mut is_away = false;
        for (delivery, answer) in deliveries.into_iter().zip(answers) {
            if is_away {
                tell(answer, Err(NotStored::NotTried));
                continue;
            }
            let stored = self.store.commit(std::slice::from_ref(&delivery), &self.state_policy, Timestamp::now()).await;
            is_away = stored.as_ref().is_err_and(|error| !error.is_refusal());
            let stored = stored.map_err(NotStored::from);
            tell(answer, stored.and_then(|stored| stored.first().copied().ok_or(NotStored::NotTried)));
        }
    }
}

/// Whoever is gone sends it again, and learns then that it is stored.
fn tell(answer: Answer, stored: Result<Delivered, NotStored>) {
    let _ = answer.send(stored);
}
