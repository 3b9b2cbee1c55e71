//! Many nodes that send at once, each holding on to its heartbeats until they are acknowledged, as an agent does; and what the database must have of them in the end.

use crate::{rollups, sample, sweeper::Sweeper, wait};
use heartbeat::{
    BootId, NodeId,
    api::{Ack, CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH, JOIN_PATH, JoinResponse},
    wire,
};
use jiff::Timestamp;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use reqwest::{Client, StatusCode, header::RETRY_AFTER};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use sweeper::{
    store::Store,
    verdict::{NodeSample, NodeState, Policy, StatePolicy},
};
use tokio::task::JoinSet;

/// How many nodes there are.
pub const NODES: u32 = 60;
/// Longest that so many envelopes as a scenario asks for may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How many heartbeats a node has to send in all: of the last 42 hours.
const HEARTBEATS: u64 = 5_000;

/// One node's sender.
#[derive(Debug)]
struct Sender {
    node: NodeId,
    boot: BootId,
    token: String,
    /// The sweepers that it may send to; the next one where one is not there.
    urls: Vec<String>,
    at: usize,
    client: Client,
    /// All heartbeats that it will ever send.
    beats: Vec<wire::Heartbeat>,
    acknowledged: u64,
}

/// What senders met with.
#[derive(Debug, Default)]
pub struct Met {
    stored: AtomicUsize,
    unavailable: AtomicUsize,
    broken_off: AtomicUsize,
}

impl Met {
    /// Envelopes that were acknowledged.
    #[must_use]
    pub fn stored(&self) -> usize {
        self.stored.load(Ordering::Relaxed)
    }

    /// Envelopes that were refused with a word on when to come again.
    #[must_use]
    pub fn unavailable(&self) -> usize {
        self.unavailable.load(Ordering::Relaxed)
    }

    /// Envelopes that nobody answered.
    #[must_use]
    pub fn broken_off(&self) -> usize {
        self.broken_off.load(Ordering::Relaxed)
    }
}

impl Sender {
    async fn join(sweepers: &[&Sweeper], number: u32) -> Self {
        let (node, boot, client) = (sample::node(number), sample::boot(number), Client::new());
        let [sweeper, ..] = sweepers else { panic!("no sweeper") };
        let join = client.post(format!("{}{JOIN_PATH}", sweeper.url())).bearer_auth(sweeper.join_token());
        let answer = join.json(&sample::join(&node, boot)).send().await.expect("the sweeper answers");
        let answer = answer.error_for_status().expect("the node may join");
        let token = answer.json::<JoinResponse>().await.expect("a join response").node_token;
        let urls = sweepers.iter().map(|sweeper| sweeper.url()).collect();
        let sequences: Vec<u64> = (1..=HEARTBEATS).collect();
        // In the past, so that one that comes later is no older than the sweeper allows.
        let beats = sample::envelope(&node, boot, &sequences, Timestamp::now()).heartbeats;
        Self { node, boot, token, urls, at: 0, client, beats, acknowledged: 0 }
    }

    /// Sends its next few heartbeats, and holds on to them until they are acknowledged.
    async fn send(&mut self, count: usize, met: &Met) {
        let from = usize::try_from(self.acknowledged).expect("a small number");
        let heartbeats = self.beats[from..from + count].to_vec();
        let envelope = sample::envelope(&self.node, self.boot, &[], Timestamp::now());
        let oldest_retained_sequence = self.acknowledged + 1;
        let envelope = wire::Envelope { heartbeats, oldest_retained_sequence, ..envelope };
        let request = self.client.post(format!("{}{HEARTBEATS_PATH}", self.urls[self.at])).bearer_auth(&self.token);
        let request = request.header("content-type", CONTENT_TYPE).header("content-encoding", CONTENT_ENCODING);
        let body = heartbeat::encode(&envelope).expect("an envelope");
        let Ok(answer) = request.body(body).send().await else {
            met.broken_off.fetch_add(1, Ordering::Relaxed);
            self.at = (self.at + 1) % self.urls.len();
            return tokio::time::sleep(Duration::from_millis(50)).await;
        };
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(answer.headers().get(RETRY_AFTER).expect("a word on when to come again"), "5");
            met.unavailable.fetch_add(1, Ordering::Relaxed);
            return tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let answer = answer.error_for_status().expect("the sweeper takes them");
        let Ok(ack) = answer.json::<Ack>().await else { return };
        met.stored.fetch_add(1, Ordering::Relaxed);
        assert!(ack.contiguous_sequence >= self.acknowledged, "the mark went backwards: {ack:?}");
        self.acknowledged = ack.contiguous_sequence;
    }
}

/// All nodes at work.
#[derive(Debug)]
pub struct Fleet {
    /// What they have met with so far.
    pub met: Arc<Met>,
    stop: Arc<AtomicBool>,
    senders: JoinSet<Sender>,
}

impl Fleet {
    /// Lets all nodes join by the first of these sweepers, and send to it; or to the next one whenever one is not there.
    ///
    /// # Panics
    ///
    /// When the sweeper refuses one.
    pub async fn start(sweepers: &[&Sweeper]) -> Self {
        let mut fleet = Self { met: Arc::default(), stop: Arc::default(), senders: JoinSet::new() };
        for number in 0..NODES {
            let mut sender = Sender::join(sweepers, number).await;
            let (met, stop) = (Arc::clone(&fleet.met), Arc::clone(&fleet.stop));
            fleet.senders.spawn(async move {
                let mut random = StdRng::seed_from_u64(number.into());
                while !stop.load(Ordering::Relaxed) && sender.acknowledged + 4 < HEARTBEATS {
                    sender.send(random.random_range(1..4), &met).await;
                }
                sender
            });
        }
        fleet
    }

    /// Waits until so many more envelopes are acknowledged.
    ///
    /// # Panics
    ///
    /// When that takes longer than a minute.
    pub async fn until_stored(&self, more: usize) {
        let from = self.met.stored();
        let stored = || async { (self.met.stored() >= from + more).then_some(()) };
        wait::until("envelopes to be acknowledged", TIMEOUT, stored).await;
    }

    /// Ends the senders and holds the database to what each of them was told: every heartbeat once, and states and rollups made of them.
    ///
    /// # Panics
    ///
    /// When it has anything else.
    pub async fn check(self, store: &Store) -> Arc<Met> {
        self.stop.store(true, Ordering::Relaxed);
        let state_policy = StatePolicy::new(Policy::default());
        let senders = self.senders.join_all().await;
        rollups::make_all(store).await;
        for sender in senders {
            let all = store.heartbeats(&sender.node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await;
            let all = all.expect("heartbeats can be read");
            let sequences: Vec<u64> = all.iter().map(|stored| stored.heartbeat.sequence).collect();
            // What was committed when a sweeper was killed may be there without an answer: three at most.
            let told = usize::try_from(sender.acknowledged).expect("a small number");
            assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "each once, without a gap");
            assert!((told..=told + 3).contains(&sequences.len()), "{told} acknowledged, {} there", sequences.len());
            let sample = |stored: &sweeper::store::StoredHeartbeat| NodeSample::of(sender.boot, &stored.heartbeat);
            let samples = all.iter().map(|stored| sample(stored).expect("a sample"));
            let states = store.node_states(Some(&sender.node.to_string())).await;
            let state = states.expect("states can be read").remove(&sender.node);
            assert_eq!(state, NodeState::of(samples, &state_policy), "the state is that of what is there");
            let all: Vec<_> = all.into_iter().map(|stored| (stored.boot_id, stored.heartbeat)).collect();
            rollups::check(store, &sender.node, &all).await;
        }
        self.met
    }
}
