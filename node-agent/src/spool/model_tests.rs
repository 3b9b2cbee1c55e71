//! The spool against a model: whatever is done to it, what was pushed and neither acknowledged nor damaged comes out, the newest
//! first, unchanged, and no sequence is given away twice within a boot.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: Limits = Limits { max_bytes: 1 << 30, max_age: Duration::from_secs(3600) };

/// What comes of a request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Stored, and the answer arrived.
    Stored,
    /// Stored, and the answer did not arrive.
    Lost,
    /// Refused for good: one of them is set aside.
    Rejected(prop::sample::Index),
}

#[derive(Clone, Debug)]
enum Step {
    Push {
        name_bytes: usize,
    },
    Send {
        max_count: usize,
        answer: Answer,
    },
    /// The process is killed and starts again in the same boot.
    Reopen,
    /// The process is killed in the middle of writing a record.
    HalfWritten {
        bytes: usize,
    },
    /// The machine starts again.
    Reboot,
    /// A record is cut at any byte.
    Truncate {
        which: prop::sample::Index,
        at: prop::sample::Index,
    },
    /// A bit of a record turns.
    Flip {
        which: prop::sample::Index,
        at: prop::sample::Index,
    },
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        6 => Just(Answer::Stored),
        1 => Just(Answer::Lost),
        1 => any::<prop::sample::Index>().prop_map(Answer::Rejected),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (0_usize..3000).prop_map(|name_bytes| Step::Push { name_bytes }),
        4 => (1_usize..6, answer()).prop_map(|(max_count, answer)| Step::Send { max_count, answer }),
        2 => Just(Step::Reopen),
        1 => (0_usize..40).prop_map(|bytes| Step::HalfWritten { bytes }),
        1 => Just(Step::Reboot),
        1 => (index(), index()).prop_map(|(which, at)| Step::Truncate { which, at }),
        1 => (index(), index()).prop_map(|(which, at)| Step::Flip { which, at }),
    ]
}

/// What should be in the spool.
#[derive(Default)]
struct Model {
    boot: u128,
    assigned: u64,
    waiting: BTreeMap<(u128, u64), wire::Heartbeat>,
    damaged: BTreeSet<(u128, u64)>,
    ever: BTreeSet<(u128, u64)>,
    /// What the sweeper has, and up to where it misses nothing, by boot.
    stored: BTreeSet<(u128, u64)>,
    contiguous: BTreeMap<u128, u64>,
}

fn node() -> NodeId {
    "host:0123456789abcdef0123456789abcdef".parse().unwrap()
}

fn id(boot: u128) -> BootId {
    BootId(uuid::Uuid::from_u128(boot))
}

fn open(directory: &Path, model: &Model) -> Spool {
    let mut spool = Spool::open(directory, &node(), id(model.boot), LIMITS).unwrap();
    spool.raise_minimum(0).unwrap();
    spool
}

fn heartbeat(name_bytes: usize) -> wire::Heartbeat {
    let host = wire::Host { hostname: "x".repeat(name_bytes), ..wire::Host::default() };
    wire::Heartbeat { host: Some(host), ..wire::Heartbeat::default() }
}

fn boot_dir(directory: &Path, boot: u128) -> std::path::PathBuf {
    let names = std::fs::read_dir(directory.join(node().to_string())).unwrap().map(|entry| entry.unwrap().path());
    let end = format!("-{}", id(boot));
    names.into_iter().find(|path| path.to_str().unwrap().ends_with(&end)).unwrap()
}

fn damage(directory: &Path, model: &mut Model, which: prop::sample::Index, change: impl FnOnce(&mut Vec<u8>)) {
    if model.waiting.is_empty() {
        return;
    }
    let key = *model.waiting.keys().nth(which.index(model.waiting.len())).unwrap();
    if model.damaged.contains(&key) {
        return;
    }
    let file = boot_dir(directory, key.0).join(format!("{:020}.heartbeat", key.1));
    let mut bytes = std::fs::read(&file).unwrap();
    if bytes.is_empty() {
        return;
    }
    change(&mut bytes);
    std::fs::write(&file, bytes).unwrap();
    model.damaged.insert(key);
}

impl Model {
    /// The newest undamaged ones of the newest boot that has any; damaged ones that are read on the way go.
    fn expected_batch(&mut self, max_count: usize) -> Vec<(u128, u64)> {
        while let Some((boot, _)) = self.waiting.keys().next_back().copied() {
            let mut batch = Vec::new();
            let of_boot = self.waiting.keys().copied().filter(|key| key.0 == boot).collect::<Vec<_>>();
            for key in of_boot.into_iter().rev() {
                if batch.len() == max_count {
                    break;
                }
                if self.damaged.contains(&key) { self.waiting.remove(&key).map_or((), drop) } else { batch.push(key) }
            }
            batch.reverse();
            if !batch.is_empty() {
                return batch;
            }
        }
        Vec::new()
    }

    fn check(&mut self, spool: &mut Spool, max_count: usize) -> Vec<(u128, u64)> {
        let expected = self.expected_batch(max_count);
        let batch = spool.batch(max_count, usize::MAX);
        let found = batch.as_ref().map(|batch| (batch.boot.0.as_u128(), &batch.heartbeats));
        let found_keys = found.iter().flat_map(|(boot, all)| all.iter().map(|one| (*boot, one.sequence)));
        assert_eq!(found_keys.collect::<Vec<_>>(), expected);
        for (key, one) in expected.iter().zip(batch.iter().flat_map(|batch| &batch.heartbeats)) {
            assert_eq!(self.waiting.get(key), Some(one));
        }
        if let Some(batch) = batch {
            let oldest = self.waiting.keys().find(|key| key.0 == expected[0].0).unwrap().1;
            assert_eq!(batch.oldest_retained_sequence, oldest);
        }
        expected
    }

    /// What the sweeper does with an envelope: keeps what is new, and moves its mark on.
    fn store(&mut self, sent: &[(u128, u64)]) -> u64 {
        let boot = sent[0].0;
        self.stored.extend(sent);
        let oldest = self.waiting.keys().find(|key| key.0 == boot).unwrap().1;
        let mark = self.contiguous.entry(boot).or_default();
        *mark = (*mark).max(oldest - 1);
        while self.stored.contains(&(boot, *mark + 1)) {
            *mark += 1;
        }
        *mark
    }

    fn send(&mut self, spool: &mut Spool, max_count: usize, answer: Answer) -> bool {
        let sent = self.check(spool, max_count);
        let Some(&(boot, _)) = sent.first() else { return false };
        match answer {
            Answer::Rejected(which) => {
                let one = sent[which.index(sent.len())];
                spool.reject(id(boot), one.1);
                self.waiting.remove(&one);
            }
            Answer::Lost => drop(self.store(&sent)),
            Answer::Stored => {
                let contiguous = self.store(&sent);
                let sequences = sent.iter().map(|key| key.1).collect::<Vec<_>>();
                spool.acknowledge(id(boot), &sequences, contiguous);
                self.waiting.retain(|key, _| !sent.contains(key) && (key.0 != boot || key.1 > contiguous));
            }
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_or_doubled_whatever_happens(steps in prop::collection::vec(step(), 1..60)) {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        let mut model = Model { boot: 1, ..Model::default() };
        let mut spool = open(directory, &model);
        for step in steps {
            match step {
                Step::Push { name_bytes } => {
                    let mut one = heartbeat(name_bytes);
                    one.sequence = spool.push(one.clone()).unwrap();
                    prop_assert!(one.sequence > model.assigned);
                    model.assigned = one.sequence;
                    prop_assert!(model.ever.insert((model.boot, one.sequence)));
                    model.waiting.insert((model.boot, one.sequence), one);
                }
                Step::Send { max_count, answer } => {
                    model.send(&mut spool, max_count, answer);
                }
                Step::Reopen => {
                    drop(spool);
                    spool = open(directory, &model);
                    prop_assert_eq!(spool.last_sequence(), Some(model.assigned));
                }
                Step::HalfWritten { bytes } => {
                    drop(spool);
                    let name = format!("{:020}.new", model.assigned + 1);
                    std::fs::write(boot_dir(directory, model.boot).join(name), vec![b'C'; bytes]).unwrap();
                    spool = open(directory, &model);
                    prop_assert_eq!(spool.last_sequence(), Some(model.assigned));
                }
                Step::Reboot => {
                    drop(spool);
                    model.boot += 1;
                    model.assigned = 0;
                    spool = open(directory, &model);
                }
                Step::Truncate { which, at } => damage(directory, &mut model, which, |bytes| bytes.truncate(at.index(bytes.len()))),
                Step::Flip { which, at } => damage(directory, &mut model, which, |bytes| {
                    let at = at.index(bytes.len());
                    bytes[at] ^= 0x10;
                }),
            }
        }
        // Everything that is left comes out, and nothing that was stored was ever discarded: what is missing was damaged or refused.
        while model.send(&mut spool, 4, Answer::Stored) {}
        prop_assert!(model.waiting.is_empty());
        prop_assert_eq!(spool.stats().waiting, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_in_any_files_cost_the_records_that_they_hit(script in prop::collection::vec(any::<u8>(), 0..400)) {
        let scratch = tempfile::tempdir().unwrap();
        ordeal::undergo(scratch.path(), &script);
    }
}
