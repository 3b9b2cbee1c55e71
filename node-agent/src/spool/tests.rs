#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use std::os::unix::fs::PermissionsExt as _;

const LIMITS: Limits = Limits { max_bytes: 1 << 30, max_age: Duration::from_secs(3600) };

fn node() -> NodeId {
    "host:0123456789abcdef0123456789abcdef".parse().unwrap()
}

fn boot(number: u128) -> BootId {
    BootId(uuid::Uuid::from_u128(number))
}

fn open(directory: &Path, boot_number: u128, limits: Limits) -> Spool {
    let mut spool = Spool::open(directory, &node(), boot(boot_number), limits).unwrap();
    spool.raise_minimum(0).unwrap();
    spool
}

fn push(spool: &mut Spool, count: usize) {
    for _ in 0..count {
        spool.push(wire::Heartbeat::default()).unwrap();
    }
}

fn next(spool: &mut Spool) -> Option<(BootId, u64, Vec<u64>)> {
    let batch = spool.batch(256, 1 << 20)?;
    let sequences = batch.heartbeats.iter().map(|heartbeat| heartbeat.sequence).collect();
    Some((batch.boot, batch.oldest_retained_sequence, sequences))
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

#[test]
fn before_the_last_sequence_is_known_nothing_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(directory.path(), &node(), boot(1), LIMITS).unwrap();
    assert_eq!(spool.push(wire::Heartbeat::default()), None);
    assert_eq!((spool.stats().waiting, spool.stats().unjoined), (0, 1));
    spool.raise_minimum(41).unwrap();
    assert_eq!(spool.push(wire::Heartbeat::default()), Some(42));
    assert_eq!(next(&mut spool), Some((boot(1), 42, vec![42])));
}

#[test]
fn an_acknowledged_sequence_is_not_given_away_again_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 5);
    spool.acknowledge(boot(1), &[], 5);
    assert_eq!(spool.stats().waiting, 0);
    drop(spool);
    let mut spool = Spool::open(directory.path(), &node(), boot(1), LIMITS).unwrap();
    assert_eq!(spool.last_sequence(), Some(5));
    push(&mut spool, 1);
    assert_eq!(next(&mut spool), Some((boot(1), 6, vec![6])));
    assert_eq!(files(directory.path()).len(), 1, "the mark goes when a newer record stands");
}

#[test]
fn the_newest_boot_is_sent_first_and_the_others_vanish_when_done() {
    let directory = tempfile::tempdir().unwrap();
    for number in [7, 3, 5] {
        push(&mut open(directory.path(), number, LIMITS), 2);
    }
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 1);
    assert_eq!(next(&mut spool), Some((boot(1), 1, vec![1])));
    spool.acknowledge(boot(1), &[1], 1);
    for number in [5, 3, 7] {
        assert_eq!(next(&mut spool), Some((boot(number), 1, vec![1, 2])));
        spool.acknowledge(boot(number), &[1, 2], 2);
    }
    assert_eq!(next(&mut spool), None);
    assert_eq!(files(directory.path()).len(), 1, "only the present boot's mark is left");
}

#[test]
fn a_batch_ends_at_its_bounds_and_what_was_stored_goes_whatever_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 6);
    let sequences = |batch: Batch| batch.heartbeats.iter().map(|one| one.sequence).collect::<Vec<_>>();
    assert_eq!(sequences(spool.batch(2, 1 << 20).unwrap()), [5, 6]);
    assert_eq!(sequences(spool.batch(9, 1).unwrap()), [6], "one is always possible");
    spool.acknowledge(boot(1), &[5, 6], 0);
    assert_eq!(
        next(&mut spool),
        Some((boot(1), 1, vec![1, 2, 3, 4])),
        "all that is left, and nothing is declared lost"
    );
    spool.reject(boot(1), 3);
    assert_eq!(next(&mut spool), Some((boot(1), 1, vec![1, 2, 4])));
    spool.acknowledge(boot(1), &[2, 4], 0);
    spool.reject(boot(1), 1);
    assert_eq!(next(&mut spool), None);
    push(&mut spool, 1);
    assert_eq!(next(&mut spool), Some((boot(1), 7, vec![7])), "what was set aside is declared lost");
    assert_eq!(spool.stats().rejected, 2);
    assert!(files(directory.path()).iter().any(|path| path.extension().is_some_and(|kind| kind == "rejected")));
}

#[test]
fn a_sweeper_that_knows_more_raises_the_minimum() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 1);
    spool.acknowledge(boot(1), &[1], 57);
    assert_eq!(spool.push(wire::Heartbeat::default()), Some(58));
    drop(spool);
    let spool = Spool::open(directory.path(), &node(), boot(1), LIMITS).unwrap();
    assert_eq!(spool.last_sequence(), Some(58));
}

#[test]
fn the_oldest_is_dropped_first_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, Limits { max_bytes: 4 * 4096, ..LIMITS });
    push(&mut spool, 10);
    assert_eq!(next(&mut spool), Some((boot(1), 7, vec![7, 8, 9, 10])));
    let stats = spool.stats();
    assert_eq!((stats.waiting, stats.waiting_bytes, stats.dropped_full), (4, 4 * 4096, 6));
}

#[test]
fn what_is_too_old_is_dropped_and_counted_and_a_clock_set_back_drops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 3);
    let now = SystemTime::now();
    spool.enforce_limits(now - Duration::from_secs(1_000_000));
    assert_eq!(spool.stats().waiting, 3);
    spool.enforce_limits(now + Duration::from_secs(3700));
    assert_eq!((spool.stats().waiting, spool.stats().dropped_old), (0, 3));
    assert_eq!(spool.push(wire::Heartbeat::default()), Some(4));
}

#[test]
fn a_disk_that_takes_nothing_leaves_a_bounded_number_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 1);
    // Root may write anywhere, so the path itself is taken away: a file stands where the boot's directory was.
    let node_dir = directory.path().join(node().to_string());
    let boot_dir = std::fs::read_dir(&node_dir).unwrap().next().unwrap().unwrap().path();
    let elsewhere = directory.path().join("elsewhere");
    std::fs::rename(&boot_dir, &elsewhere).unwrap();
    std::fs::write(&boot_dir, "").unwrap();
    push(&mut spool, MAX_IN_MEMORY + 10);
    let stats = spool.stats();
    assert_eq!(stats.waiting, 1 + u64::try_from(MAX_IN_MEMORY).unwrap());
    assert_eq!(stats.dropped_full, 10);
    assert!(spool.trouble().is_some());
    // The disk is back: the next push writes everything that is left.
    std::fs::remove_file(&boot_dir).unwrap();
    std::fs::rename(&elsewhere, &boot_dir).unwrap();
    push(&mut spool, 1);
    assert_eq!(spool.trouble(), None);
    drop(spool);
    let mut spool = open(directory.path(), 1, LIMITS);
    assert_eq!(next(&mut spool), Some((boot(1), 1, [1].into_iter().chain(12..=76).collect())));
}

#[test]
fn memory_is_bounded_in_bytes_too_and_keeps_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    let boot_dir = spool.present().dir.path().to_owned();
    std::fs::remove_dir_all(&boot_dir).unwrap();
    std::fs::write(&boot_dir, "").unwrap();
    let host = wire::Host { hostname: "x".repeat(MAX_IN_MEMORY_BYTES / 3), ..wire::Host::default() };
    for _ in 0..5 {
        spool.push(wire::Heartbeat { host: Some(host.clone()), ..wire::Heartbeat::default() }).unwrap();
    }
    assert_eq!(
        spool.batch(9, usize::MAX).unwrap().heartbeats.iter().map(|one| one.sequence).collect::<Vec<_>>(),
        [4, 5]
    );
    assert_eq!(spool.stats().dropped_full, 3);
}

#[test]
fn what_is_no_record_is_set_aside_and_never_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 4);
    let dir = spool.present().dir.path().to_owned();
    let file = |sequence: u64| dir.join(format!("{sequence:020}.heartbeat"));
    std::fs::remove_file(file(1)).unwrap();
    std::fs::create_dir(file(1)).unwrap();
    std::fs::write(file(2), vec![0; 5 << 20]).unwrap();
    std::fs::remove_file(file(3)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, file(3), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    for foreign in ["18446744073709551615.heartbeat", "7.heartbeat", "notes.txt", "00000000000000000009.new"] {
        std::fs::write(dir.join(foreign), "").unwrap();
    }
    drop(spool);
    let mut spool = open(directory.path(), 1, LIMITS);
    assert_eq!(next(&mut spool), Some((boot(1), 4, vec![4])));
    assert_eq!(spool.stats().damaged, 3);
    push(&mut spool, 1);
    assert_eq!(next(&mut spool), Some((boot(1), 4, vec![4, 5])));
    let aside = directory.path().join("set-aside");
    let largest = std::fs::read_dir(&aside).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).max();
    assert!(largest.unwrap() <= 256 * 1024, "{largest:?}");
}

#[test]
fn what_another_node_left_is_removed_and_nobody_else_may_read() {
    let directory = tempfile::tempdir().unwrap();
    push(&mut open(directory.path(), 1, LIMITS), 2);
    let other = "aws:123456789012:eu-central-1:i-0123456789abcdef0".parse().unwrap();
    let mut spool = Spool::open(directory.path(), &other, boot(1), LIMITS).unwrap();
    assert_eq!((spool.last_sequence(), next(&mut spool)), (None, None));
    assert!(files(directory.path()).is_empty());
    let mode = std::fs::metadata(directory.path().join(other.to_string())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn only_the_newest_sixteen_are_kept_aside() {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = open(directory.path(), 1, LIMITS);
    push(&mut spool, 20);
    for sequence in 1..=20 {
        spool.reject(boot(1), sequence);
    }
    let aside = directory.path().join("set-aside");
    assert_eq!(files(&aside).len(), 16);
    assert_eq!(spool.stats().rejected, 20);
    drop(spool);
    assert_eq!(open(directory.path(), 1, LIMITS).last_sequence(), Some(20));
}
