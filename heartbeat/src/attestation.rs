//! How a node proves that it is the one that joined: by a key of its own, whose private half never leaves the node.

use serde::{Deserialize, Serialize};

/// Put before the body of a join where it is signed, so that no signature made for another purpose is one of a join.
const PURPOSE: &[u8] = b"cloud-sweeper/join/1\n";
/// Length of an Ed25519 public key, in bytes.
pub const PUBLIC_KEY_BYTES: usize = 32;

/// What a node proves with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The node's Ed25519 public key: 64 hexadecimal digits.
    pub public_key: String,
    /// The challenge that the sweeper gave for this join.
    pub challenge: String,
    /// The address at which the node's configuration says the sweeper is: a proof that was made for another sweeper is none.
    pub audience: String,
}

/// The text that a join's signature covers: its purpose and every byte of its body.
#[must_use]
pub fn signed_text(body: &[u8]) -> Vec<u8> {
    [PURPOSE, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_the_purpose_and_the_whole_body() {
        assert_eq!(signed_text(b"{}"), b"cloud-sweeper/join/1\n{}");
    }
}
