//! Many nodes send at once, and whatever holds their heartbeats fails under them: the sweeper is killed, the database goes away, the disk is full.
//! What was acknowledged is there, once; what was not is refused with a word on when to come again, and comes again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use heartbeat::{
    BootId, NodeId,
    api::{Ack, CONTENT_ENCODING, CONTENT_TYPE, HEARTBEATS_PATH, JOIN_PATH, JoinResponse},
    wire,
};
use jiff::Timestamp;
use lab::{postgres::Postgres, rollups, sample, sweeper::Sweeper, tmpfs::Tmpfs, wait};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use reqwest::{Client, StatusCode, header::RETRY_AFTER};
use sea_orm::ConnectionTrait as _;
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

const NODES: u32 = 60;
const TIMEOUT: Duration = Duration::from_secs(60);

lab::on_both_databases! { what_was_acknowledged_survives_a_kill_in_the_middle_of_a_group }

/// One node's sender.
struct Sender {
    node: NodeId,
    boot: BootId,
    token: String,
    url: String,
    client: Client,
    /// All heartbeats that it will ever send.
    beats: Vec<wire::Heartbeat>,
    acknowledged: u64,
}

/// What senders met with.
#[derive(Default)]
struct Met {
    stored: AtomicUsize,
    unavailable: AtomicUsize,
    broken_off: AtomicUsize,
}

impl Met {
    fn of(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::Relaxed)
    }
}

impl Sender {
    async fn join(sweeper: &Sweeper, number: u32) -> Self {
        let (node, boot, client) = (sample::node(number), sample::boot(number), Client::new());
        let join = client.post(format!("{}{JOIN_PATH}", sweeper.url())).bearer_auth(sweeper.join_token());
        let answer = join.json(&sample::join(&node, boot)).send().await.unwrap().error_for_status().unwrap();
        let token = answer.json::<JoinResponse>().await.unwrap().node_token;
        let sequences: Vec<u64> = (1..=5_000).collect();
        // In the past, so that one that comes later is no older than the sweeper allows.
        let beats = sample::envelope(&node, boot, &sequences, Timestamp::now()).heartbeats;
        Self { node, boot, token, url: sweeper.url(), client, beats, acknowledged: 0 }
    }

    /// Sends its next few heartbeats, and holds on to them until they are acknowledged.
    async fn send(&mut self, count: usize, met: &Met) {
        let from = usize::try_from(self.acknowledged).unwrap();
        let heartbeats = self.beats[from..from + count].to_vec();
        let envelope = sample::envelope(&self.node, self.boot, &[], Timestamp::now());
        let oldest_retained_sequence = self.acknowledged + 1;
        let envelope = wire::Envelope { heartbeats, oldest_retained_sequence, ..envelope };
        let request = self.client.post(format!("{}{HEARTBEATS_PATH}", self.url)).bearer_auth(&self.token);
        let request = request.header("content-type", CONTENT_TYPE).header("content-encoding", CONTENT_ENCODING);
        let Ok(answer) = request.body(heartbeat::encode(&envelope).unwrap()).send().await else {
            met.broken_off.fetch_add(1, Ordering::Relaxed);
            return tokio::time::sleep(Duration::from_millis(50)).await;
        };
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(answer.headers().get(RETRY_AFTER).unwrap(), "5");
            met.unavailable.fetch_add(1, Ordering::Relaxed);
            return tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let Ok(ack) = answer.error_for_status().unwrap().json::<Ack>().await else { return };
        met.stored.fetch_add(1, Ordering::Relaxed);
        assert!(ack.contiguous_sequence >= self.acknowledged, "the mark went backwards: {ack:?}");
        self.acknowledged = ack.contiguous_sequence;
    }
}

/// All nodes at work.
struct Fleet {
    met: Arc<Met>,
    stop: Arc<AtomicBool>,
    senders: JoinSet<Sender>,
}

impl Fleet {
    async fn start(sweeper: &Sweeper) -> Self {
        let mut fleet = Self { met: Arc::default(), stop: Arc::default(), senders: JoinSet::new() };
        for number in 0..NODES {
            let mut sender = Sender::join(sweeper, number).await;
            let (met, stop) = (Arc::clone(&fleet.met), Arc::clone(&fleet.stop));
            fleet.senders.spawn(async move {
                let mut random = StdRng::seed_from_u64(number.into());
                while !stop.load(Ordering::Relaxed) {
                    sender.send(random.random_range(1..4), &met).await;
                }
                sender
            });
        }
        fleet
    }

    /// Until so many more envelopes are acknowledged.
    async fn until_stored(&self, more: usize) {
        let from = Met::of(&self.met.stored);
        let stored = || async { (Met::of(&self.met.stored) >= from + more).then_some(()) };
        wait::until("envelopes to be acknowledged", TIMEOUT, stored).await;
    }

    /// Ends the senders and holds the database to what each of them was told.
    async fn check(self, store: &Store) -> Arc<Met> {
        self.stop.store(true, Ordering::Relaxed);
        let state_policy = StatePolicy::new(Policy::default());
        let senders = self.senders.join_all().await;
        rollups::make_all(store).await;
        for sender in senders {
            let all = store.heartbeats(&sender.node, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
            let sequences: Vec<u64> = all.iter().map(|stored| stored.heartbeat.sequence).collect();
            // What was committed when the sweeper was killed may be there without an answer: three at most.
            let told = usize::try_from(sender.acknowledged).unwrap();
            assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "each once, without a gap");
            assert!((told..=told + 3).contains(&sequences.len()), "{told} acknowledged, {} there", sequences.len());
            let samples = all.iter().map(|stored| NodeSample::of(sender.boot, &stored.heartbeat).unwrap());
            let state = store.node_states(Some(&sender.node.to_string())).await.unwrap().remove(&sender.node);
            assert_eq!(state, NodeState::of(samples, &state_policy), "the state is that of what is there");
            let all: Vec<_> = all.into_iter().map(|stored| (stored.boot_id, stored.heartbeat)).collect();
            rollups::check(store, &sender.node, &all).await;
        }
        self.met
    }
}

fn config(url: &str) -> String {
    format!("[store]\nurl = \"{url}\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n[aws]\nenabled = \"no\"\n")
}

async fn what_was_acknowledged_survives_a_kill_in_the_middle_of_a_group(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(folder.path(), &config(&url), &[]).await;
    let fleet = Fleet::start(&sweeper).await;
    let mut random = StdRng::seed_from_u64(0x005e_edad);
    let store = Store::connect(&url).await.unwrap();
    for _ in 0..8 {
        fleet.until_stored(100).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..120))).await;
        sweeper.kill();
        // Rollups that would be due in minutes are due when it starts: it is killed while it makes them, too.
        store.connection().execute_unprepared("UPDATE rollups_due SET due_unix_ms = 0").await.unwrap();
        sweeper.start_again().await;
    }
    fleet.until_stored(100).await;
    wait::until("rollups to be made meanwhile", TIMEOUT, || async {
        let metrics = sweeper.metrics().await;
        let made = metrics.lines().find_map(|line| line.strip_prefix("rollups_made_total ")?.parse::<u64>().ok());
        made.filter(|made| *made > 0)
    })
    .await;
    let met = fleet.check(&store).await;
    assert!(Met::of(&met.broken_off) >= 8 * 10, "the sweeper was killed while many waited for it");
    let metrics = sweeper.metrics().await;
    assert!(metrics.contains("heartbeat_group_size"), "{metrics}");
}

#[tokio::test]
async fn a_database_that_goes_away_is_said_to_be_away_and_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut postgres = Postgres::start_with(&["fsync=off", "max_connections=50"]).await;
    let url = postgres.database().await;
    let sweeper = Sweeper::start(folder.path(), &config(&url), &[]).await;
    let fleet = Fleet::start(&sweeper).await;
    for _ in 0..2 {
        fleet.until_stored(100).await;
        postgres.crash().await;
        // Longer than the sweeper waits for a connection, so that it has to say no.
        let refused = Met::of(&fleet.met.unavailable);
        let all = usize::try_from(NODES).unwrap();
        wait::until("every node to be refused", TIMEOUT, || async {
            (Met::of(&fleet.met.unavailable) >= refused + all).then_some(())
        })
        .await;
        postgres.start_again().await;
    }
    fleet.until_stored(100).await;
    let met = fleet.check(&Store::connect(&url).await.unwrap()).await;
    assert_eq!(Met::of(&met.broken_off), 0, "the sweeper itself stays");
}

#[tokio::test]
async fn a_full_disk_under_the_database_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Tmpfs::mount(&folder.path().join("disk"), 64 << 20);
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("disk/sweeper.db").display());
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), &config(&url), &[]).await;
    let fleet = Fleet::start(&sweeper).await;
    fleet.until_stored(200).await;
    disk.fill();
    let refused = Met::of(&fleet.met.unavailable);
    wait::until("every node to be refused", TIMEOUT, || async {
        (Met::of(&fleet.met.unavailable) >= refused + usize::try_from(NODES).unwrap()).then_some(())
    })
    .await;
    disk.make_room();
    fleet.until_stored(200).await;
    let met = fleet.check(&Store::connect(&url).await.unwrap()).await;
    assert_eq!(Met::of(&met.broken_off), 0, "the sweeper itself stays");
}
