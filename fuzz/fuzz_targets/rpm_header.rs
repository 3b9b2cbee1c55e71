//! The parser of rpm's headers on any bytes: it must neither panic nor allocate without bound, and say nothing that the bytes do not hold.
#![no_main]

#[path = "../../node-agent/src/host/shipped/packages/header.rs"]
#[allow(dead_code, reason = "the agent uses more of it")]
mod header;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(files) = header::files(bytes) else { return };
    let mut count = 0;
    for file in files {
        count += 1;
        for text in [file.folder, file.name, file.digest] {
            assert!(!text.contains(&0) && bytes.as_ptr_range().contains(&text.as_ptr()));
        }
    }
    assert!(count <= bytes.len());
});
