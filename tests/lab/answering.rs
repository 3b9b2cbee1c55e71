//! The agent of one machine that rests, as far as the database sees it: an hour of heartbeats, and an answer to each question, as it is told to.

use crate::{sample, wait};
use heartbeat::{NodeId, wire};
use jiff::Timestamp;
use sea_orm::{ConnectionTrait as _, Statement};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};
use sweeper::store::Store;
use tokio::task::AbortHandle;

/// Half-minutes of heartbeats: an hour.
pub const BEATS: u64 = 120;

/// What the node says when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Says {
    /// It does not answer.
    Nothing,
    /// Nobody works there.
    Quiet,
    /// Somebody does.
    Works,
    /// Something else than what it is asked about does.
    WorksBeside,
}

/// What it says, by the number of the heartbeat and the end of its interval.
pub type Beat = fn(Says, u64, Timestamp) -> wire::Heartbeat;

/// It answers until it is dropped.
#[derive(Debug)]
pub struct Answers {
    says: Arc<AtomicU8>,
    task: AbortHandle,
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Answers {
    /// One that has reported until then, and says that nobody works there.
    #[must_use]
    pub fn of(store: Store, node: NodeId, reported_at: Timestamp) -> Self {
        Self::with(store, node, reported_at, |says, sequence, now| match says {
            Says::Works | Says::WorksBeside => named(sample::worked(sequence, now)),
            Says::Quiet | Says::Nothing => quiet(sequence, now),
        })
    }

    /// The same with heartbeats of this form.
    #[must_use]
    pub fn with(store: Store, node: NodeId, reported_at: Timestamp, beat: Beat) -> Self {
        let says = Arc::new(AtomicU8::new(Says::Quiet as u8));
        let answering = answering((store, node), reported_at, Arc::clone(&says), beat);
        Self { says, task: tokio::spawn(answering).abort_handle() }
    }

    /// From now on it says so.
    pub fn say(&self, says: Says) {
        self.says.store(says as u8, Ordering::SeqCst);
    }
}

/// A heartbeat of a machine that rests, whose rules have a name.
#[must_use]
pub fn quiet(sequence: u64, end: Timestamp) -> wire::Heartbeat {
    named(sample::quiet(sequence, end))
}

fn named(mut beat: wire::Heartbeat) -> wire::Heartbeat {
    beat.host.get_or_insert_default().rules_version = "builtin-1".to_owned();
    beat
}

/// When the last interval ended that the node has reported. Other nodes may have reported later: a heartbeat that began there would leave a time between that nobody saw.
///
/// # Panics
///
/// When it has reported nothing.
pub async fn last_end(store: &Store, node: &NodeId) -> Timestamp {
    let newest = store.newest_heartbeat(node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await;
    let newest = newest.expect("the database answers").expect("a heartbeat");
    let interval = newest.heartbeat.interval.expect("an interval");
    Timestamp::from_millisecond(interval.end_unix_ms).expect("a time")
}

/// Answers each question as told, with a heartbeat that goes on where the last one ended.
async fn answering((store, node): (Store, NodeId), reported_at: Timestamp, says: Arc<AtomicU8>, beat_of: Beat) {
    let (mut sequence, mut last, mut heeded) = (BEATS, reported_at, String::new());
    let before = quiet(BEATS, reported_at).interval.expect("an interval");
    let mut boottime_ns = before.end_boottime_ns;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let says = says.load(Ordering::SeqCst);
        if says == Says::Nothing as u8 {
            continue;
        }
        let connection = store.connection();
        let sql = "SELECT question FROM questions ORDER BY asked_unix_ms DESC LIMIT 1";
        let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), sql)).await;
        let Some(row) = row.expect("the database answers") else { continue };
        let question: String = row.try_get("", "question").expect("a question");
        if question == heeded {
            continue;
        }
        sequence += 1;
        let now = Timestamp::now();
        let says = [Says::Works, Says::WorksBeside].into_iter().find(|one| *one as u8 == says).unwrap_or(Says::Quiet);
        let mut beat = beat_of(says, sequence, now);
        let passed_ns = u64::try_from(now.duration_since(last).as_nanos()).expect("time goes on");
        beat.interval = Some(wire::Interval {
            start_unix_ms: last.as_millisecond(),
            end_unix_ms: now.as_millisecond(),
            start_boottime_ns: boottime_ns,
            end_boottime_ns: boottime_ns + passed_ns,
            ..before
        });
        boottime_ns += passed_ns;
        beat.answers.clone_from(&question);
        sample::store_all(&store, &node, sample::boot(1), &[beat]).await;
        (last, heeded) = (now, question);
    }
}

/// Waits until the sweeper that serves over this database counts approvals: what was approved before the first one ever had checked its database is void.
///
/// # Panics
///
/// When it does not come to that.
pub async fn counts_approvals(store: &Store) {
    let connection = store.connection();
    wait::until("a sweeper that counts approvals", Duration::from_secs(60), || async {
        let seen = "SELECT seen_unix_ms FROM continuity WHERE id = 1";
        let row = connection.query_one_raw(Statement::from_string(connection.get_database_backend(), seen)).await;
        let seen: i64 = row.expect("an answer").expect("a row").try_get("", "seen_unix_ms").expect("a time");
        (seen > 0).then_some(())
    })
    .await;
}
