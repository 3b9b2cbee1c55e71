//! The spool reader on any bytes: a single record, and a whole directory in which anything may have happened.
#![no_main]

#[path = "../../node-agent/src/spool/ordeal.rs"]
mod ordeal;
#[path = "../../node-agent/src/spool/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the agent uses more of it")]
mod spool;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(heartbeat) = spool::read_record(bytes) {
        assert!(format!("{heartbeat:?}").len() < bytes.len() * 1000 + 100_000);
    }
    // Memory, where there is some: the files of a run live for a millisecond.
    let folder = if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
    let scratch = tempfile::tempdir_in(folder).expect("a folder");
    ordeal::undergo(scratch.path(), bytes);
});
