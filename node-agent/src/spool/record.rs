//! The bytes of one spooled heartbeat: a mark, a checksum, a length, the protobuf message.

use heartbeat::wire;
use prost::Message as _;

const MARK: [u8; 4] = *b"CSH1";
const HEADER_BYTES: usize = 12;
/// What is longer is no record: no envelope could carry it.
pub(super) const MAX_BYTES: usize = HEADER_BYTES + heartbeat::envelope::MAX_DECOMPRESSED_BYTES;

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Damage {
    /// Shorter or longer than it says.
    #[error("it has {found} bytes where {expected} are expected")]
    Length {
        /// Bytes that are there.
        found: usize,
        /// Bytes that should be there.
        expected: usize,
    },
    /// Another format.
    #[error("it does not begin with a record's mark")]
    Mark,
    /// Other bytes than were written.
    #[error("its checksum is wrong")]
    Checksum,
    /// Whole, and yet no heartbeat: written by another version.
    #[error("it is no heartbeat: {0}")]
    Message(#[from] prost::DecodeError),
}

/// Reads the heartbeat out of a record.
///
/// # Errors
/// See [`Damage`]: nothing of a damaged record is used.
pub fn read(record: &[u8]) -> Result<wire::Heartbeat, Damage> {
    Ok(wire::Heartbeat::decode(decode(record)?)?)
}

pub(super) fn encode(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut record = Vec::with_capacity(HEADER_BYTES + payload.len());
    record.extend_from_slice(&MARK);
    record.extend_from_slice(&checksum(&length, payload).to_le_bytes());
    record.extend_from_slice(&length);
    record.extend_from_slice(payload);
    record
}

fn decode(record: &[u8]) -> Result<&[u8], Damage> {
    let (Some((mark, rest)), true) = (record.split_first_chunk::<4>(), record.len() >= HEADER_BYTES) else {
        return Err(Damage::Length { found: record.len(), expected: HEADER_BYTES });
    };
    let (Some((sum, rest)), true) = (rest.split_first_chunk::<4>(), *mark == MARK) else { return Err(Damage::Mark) };
    let Some((length, payload)) = rest.split_first_chunk::<4>() else { return Err(Damage::Mark) };
    let expected = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if payload.len() != expected {
        return Err(Damage::Length { found: payload.len(), expected });
    }
    if checksum(length, payload) != u32::from_le_bytes(*sum) {
        return Err(Damage::Checksum);
    }
    Ok(payload)
}

fn checksum(length: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read_and_any_shorter_part_is_refused(payload in prop::collection::vec(any::<u8>(), 0..300)) {
            let record = encode(&payload);
            prop_assert_eq!(decode(&record), Ok(payload.as_slice()));
            for end in 0..record.len() {
                prop_assert!(decode(&record[..end]).is_err());
            }
        }

        #[test]
        fn any_changed_bit_is_refused(payload in prop::collection::vec(any::<u8>(), 0..300), at: prop::sample::Index, bit in 0_u8..8) {
            let mut record = encode(&payload);
            let at = at.index(record.len());
            record[at] ^= 1_u8 << bit;
            prop_assert!(decode(&record).is_err());
        }
    }
}
