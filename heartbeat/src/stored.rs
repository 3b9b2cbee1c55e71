//! One heartbeat as it is kept: packed alone, with the contract's dictionary, so that each can be read alone.

use crate::{
    envelope::MAX_DECOMPRESSED_BYTES,
    packing::{pack, told_bytes, unpack},
    wire::Heartbeat,
};
use prost::Message as _;

/// Packs a heartbeat.
///
/// # Errors
/// Only if zstd cannot get memory.
pub fn pack_one(heartbeat: &Heartbeat) -> std::io::Result<Vec<u8>> {
    pack(&heartbeat.encode_to_vec())
}

/// Reads a heartbeat that was packed with this dictionary, or without any, as versions before did.
///
/// # Errors
/// If it is damaged, or larger than an accepted envelope is.
pub fn unpack_one(packed: &[u8]) -> std::io::Result<Heartbeat> {
    // A frame that tells its length takes no more than that.
    let bytes = told_bytes(packed).unwrap_or(MAX_DECOMPRESSED_BYTES).min(MAX_DECOMPRESSED_BYTES);
    Heartbeat::decode(unpack(packed, bytes)?.as_slice()).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packing::COMPRESSION_LEVEL;
    use crate::wire::{Host, WorkloadActivity};

    fn heartbeat() -> Heartbeat {
        let host = Host { hostname: "worker-1".to_owned(), cpus: 8, ..Host::default() };
        let row = |number: u64| WorkloadActivity {
            key: format!("/system.slice/batch-{number}.service"),
            cpu_ns: Some(number),
            ..WorkloadActivity::default()
        };
        Heartbeat { sequence: 7, host: Some(host), workloads: (0..20).map(row).collect(), ..Heartbeat::default() }
    }

    #[test]
    fn what_is_packed_comes_back_and_is_smaller_than_without_the_dictionary() {
        let packed = pack_one(&heartbeat()).unwrap_or_default();
        assert_eq!(unpack_one(&packed).ok(), Some(heartbeat()));
        let without = zstd::bulk::compress(&heartbeat().encode_to_vec(), COMPRESSION_LEVEL).unwrap_or_default();
        assert!(packed.len() < without.len(), "{} bytes, {} without the dictionary", packed.len(), without.len());
        assert_eq!(unpack_one(&without).ok(), Some(heartbeat()), "as versions before wrote it");
    }

    #[test]
    fn what_is_damaged_or_too_large_is_refused() {
        let packed = pack_one(&heartbeat()).unwrap_or_default();
        assert!(unpack_one(&packed[..packed.len() - 1]).is_err());
        assert!(unpack_one(b"no frame").is_err());
        let large = zstd::bulk::compress(&vec![0; MAX_DECOMPRESSED_BYTES + 1], 1).unwrap_or_default();
        assert!(unpack_one(&large).is_err());
    }
}
