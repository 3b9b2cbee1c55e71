//! What a spool must survive: any bytes in its records, any files beside them. A property test and a fuzzer put it through this.
//!
//! The unit of loss is one record: whatever is done to one, every other one comes out, once and unchanged.

use crate::spool::{Limits, Spool};
use heartbeat::{BootId, NodeId, wire};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

const LIMITS: Limits = Limits { max_bytes: 1 << 30, max_age: Duration::from_secs(3600) };
const PER_BOOT: u64 = 3;

fn boot(number: u128) -> BootId {
    BootId(uuid::Uuid::from_u128(number))
}

fn open(folder: &Path, node: &NodeId, number: u128) -> Spool {
    let mut spool = Spool::open(folder, node, boot(number), LIMITS).expect("a spool opens whatever lies in it");
    spool.raise_minimum(0).expect("a minimum can be written");
    spool
}

/// Records by boot and sequence, with their files.
fn fill(folder: &Path, node: &NodeId) -> BTreeMap<(u128, u64), PathBuf> {
    let mut files = BTreeMap::new();
    for number in [1, 2] {
        let mut spool = open(folder, node, number);
        for sequence in 1..=PER_BOOT {
            let host = wire::Host { hostname: format!("{number}-{sequence}"), ..wire::Host::default() };
            spool
                .push(wire::Heartbeat { host: Some(host), ..wire::Heartbeat::default() })
                .expect("a sequence is known");
            let folder = folder.join(node.to_string()).join(format!("{number:08}-{}", boot(number)));
            files.insert((number, sequence), folder.join(format!("{sequence:020}.heartbeat")));
        }
    }
    files
}

/// Does to a filled spool in `folder` what the bytes say, opens it again and empties it.
///
/// # Panics
/// If a record that was left alone does not come out, or comes out twice or changed; or if the spool panics or hangs.
pub(crate) fn undergo(folder: &Path, script: &[u8]) {
    let node = "host:0123456789abcdef0123456789abcdef".parse().expect("a node id");
    let files = fill(folder, &node);
    let mut alone = files.clone();
    let mut rest = script;
    while let [kind, which, length, behind @ ..] = rest {
        let (bytes, after) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = after;
        let (key, file) = files.iter().nth(usize::from(*which) % files.len()).expect("an index within");
        if let Some(touched) = act(*kind, file, bytes, folder) {
            alone.retain(|_, file| *file != touched);
        } else if kind % 6 < 4 {
            alone.remove(key);
        }
    }
    let mut spool = open(folder, &node, 2);
    let mut came = BTreeMap::new();
    // A batch takes at least one record out; scripts make fewer than two for each of their bytes.
    for _ in 0..files.len() + script.len() {
        let Some(batch) = spool.batch(4, 1 << 20) else { break };
        let sequences = batch.heartbeats.iter().map(|one| one.sequence).collect::<Vec<_>>();
        for one in batch.heartbeats {
            let name = one.host.map(|host| host.hostname).unwrap_or_default();
            let before = came.insert((batch.boot.0.as_u128(), one.sequence), name);
            assert_eq!(before, None, "a record came out twice");
        }
        spool.acknowledge(batch.boot, &sequences, 0);
    }
    assert_eq!(spool.stats().waiting, 0, "something stays for ever");
    for (number, sequence) in alone.into_keys() {
        assert_eq!(came.get(&(number, sequence)), Some(&format!("{number}-{sequence}")), "record {number}-{sequence}");
    }
}

/// One change. `Some` is the file that was touched if it is not the one that was chosen.
fn act(kind: u8, file: &Path, bytes: &[u8], folder: &Path) -> Option<PathBuf> {
    let name = String::from_utf8_lossy(bytes).replace(['/', '\0'], "_");
    // Two folders for one boot are a person's doing, and the later one counts.
    let usable = !name.is_empty() && name != "." && name != ".." && name.len() < 200 && !name.contains("-0000-0000-");
    match kind % 6 {
        0 => drop(fs::write(file, bytes)),
        1 => {
            let whole = fs::read(file).unwrap_or_default();
            drop(fs::write(file, &whole[..whole.len().min(bytes.len())]));
        }
        2 => {
            let mut whole = fs::read(file).unwrap_or_default();
            for (at, byte) in bytes.iter().enumerate() {
                if let Some(old) = whole.get_mut(at * 7 % 64) {
                    *old ^= byte;
                }
            }
            drop(fs::write(file, whole));
        }
        3 => drop(fs::read(file).and_then(|whole| fs::write(file, [&whole, bytes].concat()))),
        4 if usable => {
            let beside = file.with_file_name(name);
            drop(fs::write(&beside, bytes));
            return Some(beside);
        }
        5 if usable => {
            drop(fs::create_dir_all(folder.join(&name)));
            let beside = file.parent().and_then(Path::parent).map(|node| node.join(&name));
            drop(beside.map(fs::create_dir_all));
        }
        _ => {}
    }
    Some(PathBuf::new()).filter(|_| kind % 6 > 3)
}
