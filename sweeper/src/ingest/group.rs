//! Group commit: requests hand what they bring to one writer, which stores what has gathered in one transaction, and answers them all.
//!
//! Under load a group is awaited for up to [`LINGER`], so that a database's round trips and its sync are shared by a hundred senders; a sender
//! that comes alone does not wait. A group that fails is stored one by one, so that nobody fails for what another has sent.

use crate::{
    store::{Delivered, Delivery, Store, StoreError},
    verdict::Folding,
};
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// Most senders of one group.
const MAX_GROUP: usize = 512;
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
    pub(super) fn over(store: Store, folding: Arc<Folding>) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_GROUP);
        tokio::spawn(write(Committing { store, folding }, waiting));
        Self { queue }
    }

    /// Stores a delivery together with those of others. It is stored even if nobody waits for the answer any more.
    pub(super) async fn store(&self, delivery: Delivery) -> Result<Delivered, NotStored> {
        let (answer, answered) = oneshot::channel();
        self.queue.send((delivery, answer)).await.map_err(|_| NotStored::Closing)?;
        answered.await.map_err(|_| NotStored::Closing)?
    }
}

/// What is needed to commit.
struct Committing {
    store: Store,
    folding: Arc<Folding>,
}

async fn write(committing: Committing, mut waiting: mpsc::Receiver<(Delivery, Answer)>) {
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
        metrics::histogram!("heartbeat_group_size").record(f64::from(u32::try_from(group.len()).unwrap_or(u32::MAX)));
        committing.commit(group).await;
    }
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
    async fn commit(&self, group: Vec<(Delivery, Answer)>) {
        let (deliveries, answers): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let stored = self.store.commit(&deliveries, &self.folding, Timestamp::now()).await;
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
            let stored = self.store.commit(std::slice::from_ref(&delivery), &self.folding, Timestamp::now()).await;
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
