//! Heartbeats have what their node did in columns, lie by day on PostgreSQL, and are stored once whatever day they claim to be of.

use super::{answer, everything, open, send, send_at};
use heartbeat::wire;
use jiff::{SignedDuration, Timestamp};
use lab::{postgres::Postgres, sample};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sea_orm::{ConnectionTrait as _, DbBackend, Statement, TransactionTrait as _};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use sweeper::store::{Store, TokenHash};
use tokio::task::JoinSet;

lab::on_both_databases! {
    a_sequence_that_comes_again_with_another_end_is_stored_once,
    of_one_sequence_with_many_ends_two_sweepers_store_one,
    columns_say_what_the_heartbeat_says_and_nothing_where_it_was_not_measured,
}

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// All that an SQL query says, a row a line.
pub(super) async fn lines(store: &Store, sql: &str) -> Vec<String> {
    let connection = store.connection();
    let rows = connection.query_all_raw(Statement::from_string(connection.get_database_backend(), sql)).await.unwrap();
    rows.iter().map(|row| row.try_get("", "line").unwrap()).collect()
}

async fn a_sequence_that_comes_again_with_another_end_is_stored_once(url: String) {
    let store = open(&url).await;
    let (boot, now) = (sample::boot(1), Timestamp::now());
    assert_eq!(send_at(&store, boot, &[1, 2, 4], 1, now).await, answer(3, 0, 2, 0));
    for days in [-3, -1, 1, 2] {
        // Above the watermark and below it, beside one that is new.
        assert_eq!(send_at(&store, boot, &[4], 1, now + DAY * days).await, answer(0, 1, 2, 0), "{days} days on");
        assert_eq!(send_at(&store, boot, &[2], 1, now + DAY * days).await, answer(0, 1, 2, 0), "{days} days on");
    }
    // In one envelope with its like, whose end is another.
    let mut envelope = sample::envelope(&sample::node(1), boot, &[4, 5, 6], now + DAY);
    envelope.heartbeats.push(sample::heartbeat(6, now + DAY * 2));
    envelope.oldest_retained_sequence = 1;
    let stored = store.store_heartbeats(&sample::checked(&envelope), now).await.unwrap();
    assert_eq!(stored, answer(2, 2, 2, 0));
    assert_eq!(send_at(&store, boot, &[3], 1, now).await, answer(1, 0, 6, 0));
    let mut sequences: Vec<u64> =
        everything(&store, &sample::node(1)).await.into_iter().map(|(_, sequence)| sequence).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6]);
}

async fn of_one_sequence_with_many_ends_two_sweepers_store_one(url: String) {
    const SENT: u64 = 60;
    let sweepers = [open(&url).await, Store::connect(&url).await.unwrap()];
    let (boot, now) = (sample::boot(1), Timestamp::now());
    let mut tasks = JoinSet::new();
    for sequence in 2..=SENT {
        for days in 0..4 {
            let store = sweepers[usize::try_from(days % 2).unwrap()].clone();
            tasks.spawn(async move { send_at(&store, boot, &[sequence], 1, now + DAY * days).await });
        }
    }
    let stored: u32 = tasks.join_all().await.into_iter().map(|answer| answer.stored).sum();
    assert_eq!(u64::from(stored), SENT - 1);
    // Only now is there no gap.
    assert_eq!(send(&sweepers[0], boot, &[1], 1).await, answer(1, 0, SENT, 0));
    assert_eq!(everything(&sweepers[1], &sample::node(1)).await.len(), usize::try_from(SENT).unwrap());
}

/// A heartbeat of which some is not measured, and what its columns must say.
fn told(random: &mut StdRng, sequence: u64, end: Timestamp) -> (wire::Heartbeat, String) {
    let mut beat = sample::heartbeat(sequence, end);
    let some = |random: &mut StdRng| random.random_bool(0.8).then(|| random.random_range(0..1_u64 << 40));
    let mut counters = beat.counters.unwrap();
    for counter in [
        &mut counters.cpu_busy_ns,
        &mut counters.disk_read_bytes,
        &mut counters.disk_written_bytes,
        &mut counters.network_received_bytes,
        &mut counters.network_sent_bytes,
    ] {
        *counter = some(random);
    }
    beat.counters = Some(counters);
    beat.workloads.clear();
    for _ in 0..random.random_range(0..4) {
        let row = wire::WorkloadActivity { cpu_ns: some(random), execs: some(random), ..sample::kernel() };
        beat.workloads.push(wire::WorkloadActivity { class: wire::Class::Workload.into(), ..row });
    }
    let housekeeping = wire::WorkloadActivity { cpu_ns: Some(1 << 50), execs: Some(1 << 50), ..sample::kernel() };
    beat.workloads.push(wire::WorkloadActivity { class: wire::Class::Housekeeping.into(), ..housekeeping });
    let sees_the_host = random.random_bool(0.8);
    if sees_the_host {
        beat.workloads.push(sample::kernel());
    }
    beat.gpus = (0..random.random_range(0..3))
        .map(|number| wire::Gpu { uuid: format!("GPU-{number}"), busy_ns: some(random), ..wire::Gpu::default() })
        .collect();

    let sum = |values: Vec<Option<u64>>| values.into_iter().try_fold(0, |sum, value| Some(sum + value?));
    let of_workloads = |counter: fn(&wire::WorkloadActivity) -> Option<u64>| {
        let rows = beat.workloads.iter().filter(|row| row.class == i32::from(wire::Class::Workload));
        sum(rows.map(counter).collect()).filter(|_| sees_the_host)
    };
    let columns = [
        counters.cpu_busy_ns,
        of_workloads(|row| row.cpu_ns),
        of_workloads(|row| row.execs),
        sum(vec![counters.disk_read_bytes, counters.disk_written_bytes]),
        sum(vec![counters.network_received_bytes, counters.network_sent_bytes]),
        sum(beat.gpus.iter().map(|gpu| gpu.busy_ns).collect()).filter(|_| !beat.gpus.is_empty()),
    ];
    let words = columns.map(|column: Option<u64>| column.map_or("-".to_owned(), |value| value.to_string()));
    (beat, words.join(" "))
}

async fn columns_say_what_the_heartbeat_says_and_nothing_where_it_was_not_measured(url: String) {
    let store = open(&url).await;
    let mut random = StdRng::seed_from_u64(0x005e_edad);
    let now = Timestamp::now();
    let (beats, expected): (Vec<_>, Vec<_>) = (1..=200).map(|sequence| told(&mut random, sequence, now)).unzip();
    let envelope = sample::envelope(&sample::node(1), sample::boot(1), &[], now);
    let envelope = wire::Envelope { heartbeats: beats, oldest_retained_sequence: 1, ..envelope };
    store.store_heartbeats(&sample::checked(&envelope), now).await.unwrap();
    let columns = ["cpu_busy_ns", "workload_cpu_ns", "workload_execs", "disk_bytes", "network_bytes", "gpu_busy_ns"];
    let text = columns.map(|column| format!("COALESCE(CAST({column} AS TEXT), '-')")).join(" || ' ' || ");
    assert_eq!(lines(&store, &format!("SELECT {text} AS line FROM heartbeats ORDER BY sequence")).await, expected);
    for column in columns {
        let each_kind = format!(
            "SELECT DISTINCT '' AS line FROM heartbeats WHERE {column} > 0 UNION ALL \
                                 SELECT DISTINCT '' AS line FROM heartbeats WHERE {column} IS NULL"
        );
        assert_eq!(lines(&store, &each_kind).await.len(), 2, "{column} was measured at times");
    }
}

/// How many heartbeats each partition has.
async fn by_partition(store: &Store) -> BTreeMap<String, u64> {
    let tables = "SELECT inhrelid::regclass::text AS line FROM pg_inherits WHERE inhparent = 'heartbeats'::regclass";
    let mut counts = BTreeMap::new();
    for table in lines(store, tables).await {
        let count = lines(store, &format!("SELECT count(*)::text AS line FROM {table}")).await.remove(0);
        counts.insert(table, count.parse().unwrap());
    }
    counts
}

fn partition_of(time: Timestamp) -> String {
    format!("heartbeats_{}", time.strftime("%Y%m%d"))
}

async fn on_postgresql() -> (Arc<Postgres>, String) {
    let server = Postgres::shared().await;
    let url = server.database().await;
    (server, url)
}

#[tokio::test]
async fn heartbeats_lie_in_the_partition_of_their_day_and_days_are_dropped_whole() {
    let (_server, url) = on_postgresql().await;
    let store = open(&url).await;
    assert_eq!(store.make_heartbeat_days().await.unwrap(), 0, "the migration has made a week of them");
    let now = store.now().await.unwrap();
    let fresh = by_partition(&store).await;
    let before = format!("heartbeats_before_{}", now.strftime("%Y%m%d"));
    let ahead = (0..=7).map(|days| partition_of(now + DAY * days));
    assert_eq!(fresh.keys().cloned().collect::<Vec<_>>(), ahead.chain([before.clone()]).collect::<Vec<_>>());

    // At noon, so that both of a node are of one day: days before all of them, days that are there, days that nobody has made.
    let noon = Timestamp::from_second(now.as_second().div_euclid(86_400) * 86_400 + 43_200).unwrap();
    for (number, days) in (0..).zip([-400, -9, -1, 0, 1, 7, 8, 30]) {
        assert_eq!(send_at(&store, sample::boot(number), &[1, 2], 1, noon + DAY * days).await.stored, 2, "{days}");
    }
    let found = by_partition(&store).await;
    let mut expected: BTreeMap<_, _> = fresh.keys().cloned().map(|table| (table, 0)).collect();
    expected.insert(before, 6);
    expected.extend([0, 1, 7, 8, 30].map(|days| (partition_of(noon + DAY * days), 2)));
    assert_eq!(found, expected);

    // The day that is not over at this time stays.
    let kept_from = now + DAY;
    assert_eq!(store.drop_heartbeat_days_before(kept_from).await.unwrap(), 2);
    assert_eq!(store.drop_heartbeat_days_before(kept_from).await.unwrap(), 0);
    let found = by_partition(&store).await;
    let before = format!("heartbeats_before_{}", kept_from.strftime("%Y%m%d"));
    assert_eq!((found.len(), found[&before]), (fresh.len() + 2 - 1, 0));
    // What comes so late makes no day; it is stored, and goes with the next round.
    assert_eq!(send_at(&store, sample::boot(20), &[1], 1, noon).await.stored, 1);
    assert_eq!(by_partition(&store).await[&before], 1);
    assert_eq!(store.delete_heartbeats_before(kept_from).await.unwrap(), 1);
    assert_eq!(by_partition(&store).await[&before], 0);
}

#[tokio::test]
async fn of_several_replicas_who_miss_the_same_day_one_makes_it() {
    let (_server, url) = on_postgresql().await;
    let store = open(&url).await;
    let now = store.now().await.unwrap();
    for days in [2, 3, 4] {
        let drop = format!("DROP TABLE {}", partition_of(now + DAY * days));
        store.connection().execute_unprepared(&drop).await.unwrap();
    }
    let mut replicas = JoinSet::new();
    for number in 0..12 {
        let store = Store::connect(&url).await.unwrap();
        replicas.spawn(async move {
            if number % 2 == 0 {
                return store.make_heartbeat_days().await.unwrap();
            }
            let sent = send_at(&store, sample::boot(number), &[1], 1, now + DAY * 3).await;
            assert_eq!(sent.stored, 1);
            // And a day that none of them makes ahead.
            u64::from(send_at(&store, sample::boot(number), &[2], 1, now + DAY * 20).await.stored) - 1
        });
    }
    let made: u64 = replicas.join_all().await.into_iter().sum();
    assert!((2..=3).contains(&made), "of three days one may be made by who stores: {made}");
    let found = by_partition(&store).await;
    assert_eq!((found.len(), found.values().sum::<u64>()), (10, 12));
}

/// A sender with a few heartbeats of each of these days, in disorder.
async fn send_of_days(store: Store, number: u32, noon: Timestamp, done: Arc<AtomicBool>) -> Vec<(u64, Timestamp)> {
    let mut random = StdRng::seed_from_u64(number.into());
    let mut acknowledged = Vec::new();
    let mut sequence = 0;
    while !done.load(Ordering::Relaxed) {
        let beats: Vec<_> = (0..random.random_range(1..6))
            .map(|_| {
                sequence += 1;
                let minutes = SignedDuration::from_mins(random.random_range(0..14 * 1_440));
                (sequence, noon - DAY * 2 + minutes)
            })
            .collect();
        let heartbeats = beats.iter().map(|(sequence, end)| sample::heartbeat(*sequence, *end)).collect();
        let envelope = sample::envelope(&sample::node(number), sample::boot(number), &[], noon);
        let envelope = wire::Envelope { heartbeats, oldest_retained_sequence: 1, ..envelope };
        let stored = store.store_heartbeats(&sample::checked(&envelope), noon).await.unwrap();
        assert_eq!(usize::try_from(stored.stored).unwrap(), beats.len());
        acknowledged.extend(beats);
    }
    acknowledged
}

#[tokio::test]
async fn days_are_made_and_dropped_by_two_replicas_while_senders_go_on_and_nothing_that_is_kept_is_lost() {
    const NODES: u32 = 6;
    let (_server, url) = on_postgresql().await;
    let replicas = [open(&url).await, Store::connect(&url).await.unwrap()];
    let now = replicas[0].now().await.unwrap();
    let noon = Timestamp::from_second(now.as_second().div_euclid(86_400) * 86_400 + 43_200).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for number in 0..NODES {
        let store = replicas[usize::try_from(number % 2).unwrap()].clone();
        let request = sample::join(&sample::node(number), sample::boot(number));
        store.join_node(&request, &TokenHash::of(&format!("token {number}")), now).await.unwrap();
        let done = Arc::clone(&done);
        senders.spawn(async move { (number, send_of_days(store, number, noon, done).await) });
    }
    // Retention moves on by a day each time, past days that senders go on to fill.
    let mut keepers = JoinSet::new();
    for store in replicas.clone() {
        keepers.spawn(async move {
            let mut dropped = 0;
            for days in 0..8 {
                for _ in 0..5 {
                    store.make_heartbeat_days().await.unwrap();
                    dropped += store.drop_heartbeat_days_before(noon + DAY * days).await.unwrap();
                    store.delete_heartbeats_before(noon + DAY * days).await.unwrap();
                    // Rollups read many days at once.
                    store.roll_up(noon + DAY * 30, Timestamp::UNIX_EPOCH).await.unwrap();
                }
            }
            dropped
        });
    }
    let dropped: u64 = keepers.join_all().await.into_iter().sum();
    done.store(true, Ordering::Relaxed);
    // Seven days at least, and with them what lay before all days.
    assert!(dropped >= 8, "{dropped}");
    let first_kept = noon + DAY * 7 - SignedDuration::from_hours(12);
    for (number, acknowledged) in senders.join_all().await {
        let kept: Vec<u64> =
            acknowledged.iter().filter(|(_, end)| *end >= first_kept).map(|(sequence, _)| *sequence).collect();
        assert!(kept.len() > 10, "enough to tell: {}", kept.len());
        let found = replicas[0].heartbeats(&sample::node(number), first_kept, Timestamp::MAX).await.unwrap();
        let mut found: Vec<u64> = found.into_iter().map(|stored| stored.heartbeat.sequence).collect();
        found.sort_unstable();
        assert_eq!(found, kept, "node {number}");
    }
    for table in by_partition(&replicas[0]).await.into_keys() {
        let before = format!("heartbeats_before_{}", first_kept.strftime("%Y%m%d"));
        assert!(table >= partition_of(first_kept), "{table}");
        assert!(!table.starts_with("heartbeats_before_") || table == before, "{table}");
    }
}

#[tokio::test]
async fn a_day_that_somebody_reads_is_dropped_later_and_heartbeats_are_stored_meanwhile() {
    let (_server, url) = on_postgresql().await;
    let store = open(&url).await;
    let (boot, now) = (sample::boot(1), store.now().await.unwrap());
    send_at(&store, boot, &[1], 1, now).await;
    let reader = store.connection().begin().await.unwrap();
    let select = Statement::from_string(DbBackend::Postgres, "SELECT 1 AS one FROM heartbeats");
    assert_eq!(reader.query_all_raw(select).await.unwrap().len(), 1);
    let sending = async {
        for sequence in 2..40 {
            assert_eq!(send_at(&store, boot, &[sequence], 1, now + DAY * 2).await.stored, 1);
        }
    };
    let (dropped, ()) = tokio::join!(store.drop_heartbeat_days_before(now + DAY), sending);
    assert_eq!(dropped.unwrap(), 0, "in use");
    assert_eq!(everything(&store, &sample::node(1)).await.len(), 39);
    reader.commit().await.unwrap();
    assert_eq!(store.drop_heartbeat_days_before(now + DAY).await.unwrap(), 2);
    assert_eq!(everything(&store, &sample::node(1)).await.len(), 38);
}
