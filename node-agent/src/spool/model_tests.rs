//! The spool against a model: whatever is done to it, what was pushed and neither acknowledged nor damaged comes out, once,
//! in order, unchanged, and no sequence is given away twice within a boot.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: Limits = Limits { max_bytes: 1 << 30, max_age: Duration::from_secs(3600) };

#[derive(Clone, Debug)]
enum Step {
    Push {
        name_bytes: usize,
    },
    Send {
        max_count: usize,
        acknowledged: prop::sample::Index,
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

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (0_usize..3000).prop_map(|name_bytes| Step::Push { name_bytes }),
        4 => (1_usize..6, index()).prop_map(|(max_count, acknowledged)| Step::Send { max_count, acknowledged }),
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
}

fn node() -> NodeId {
    "host:0123456789abcdef0123456789abcdef".parse().unwrap()
}

fn id(boot: u128) -> BootId {
    BootId(uuid::Uuid::from_u128(boot))
}

fn open(directory: &Path, model: &Model) -> Spool {
    let mut spool = Spool::open(directory, &node(), id(model.boot), LIMITS).unwrap();
    spool.raise_floor(0).unwrap();
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
    /// The oldest undamaged run of one boot without a gap; damaged records before it go.
    fn expected_batch(&mut self, max_count: usize) -> Vec<(u128, u64)> {
        while let Some(first) = self.waiting.keys().next().copied() {
            if self.damaged.contains(&first) {
                self.waiting.remove(&first);
                continue;
            }
            let run = (first.1..).map(|sequence| (first.0, sequence));
            let run =
                run.take(max_count).take_while(|key| self.waiting.contains_key(key) && !self.damaged.contains(key));
            let run = run.collect::<Vec<_>>();
            // The spool notices a damaged record when it reads up to it, and takes it out at once.
            let next = (first.0, run.last().unwrap().1 + 1);
            if run.len() < max_count && self.damaged.contains(&next) {
                self.waiting.remove(&next);
            }
            return run;
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
            assert_eq!(batch.oldest_retained_sequence, expected[0].1);
        }
        expected
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
                Step::Send { max_count, acknowledged } => {
                    let sent = model.check(&mut spool, max_count);
                    if !sent.is_empty() {
                        let last = sent[acknowledged.index(sent.len())];
                        spool.acknowledge(id(last.0), last.1);
                        model.waiting.retain(|key, _| key.0 != last.0 || key.1 > last.1);
                    }
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
        // Everything that is left comes out in order.
        loop {
            let sent = model.check(&mut spool, 4);
            let Some(last) = sent.last() else { break };
            spool.acknowledge(id(last.0), last.1);
            model.waiting.retain(|key, _| key.0 != last.0 || key.1 > last.1);
        }
        prop_assert!(model.waiting.is_empty());
        prop_assert_eq!(spool.stats().waiting, 0);
    }
}
