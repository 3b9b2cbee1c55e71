//! Challenges: texts that one join of one node must carry.
//!
//! A challenge is not stored when it is given, so that strangers who ask for many cost nothing but an HMAC each: it carries its own end and
//! a keyed hash by which the sweepers of one database know it again. It is stored when it has been used, until it would have expired.

use aws_lc_rs::hmac;
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use rand::TryRngCore as _;
use std::fmt;

/// How long a challenge is good for: the time of one request, with an evidence from a metadata service in between.
pub const LIFETIME: SignedDuration = SignedDuration::from_secs(120);

const RANDOM_BYTES: usize = 16;
const END_BYTES: usize = 8;
const MAC_BYTES: usize = 32;

/// Why a challenge is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// Not given by this sweeper, or to another node.
    #[error("this sweeper gave no such challenge to this node")]
    NotOurs,
    /// Too old.
    #[error("the challenge has expired")]
    Expired,
}

/// What the challenges of all sweepers over one database are made with.
#[derive(Clone)]
pub struct ChallengeKey(hmac::Key);

impl ChallengeKey {
    /// From a secret text that the sweepers share.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// A challenge for one node.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn give(&self, node: &NodeId, now: Timestamp) -> Result<String, rand::rand_core::OsError> {
        let mut plain = [0; END_BYTES + RANDOM_BYTES];
        let end_ms = now.as_millisecond().saturating_add(i64::try_from(LIFETIME.as_millis()).unwrap_or(0));
        plain[..END_BYTES].copy_from_slice(&end_ms.to_be_bytes());
        rand::rngs::OsRng.try_fill_bytes(&mut plain[END_BYTES..])?;
        let mac = hmac::sign(&self.0, &said(&plain, node));
        Ok(format!("{}{}", hex::encode(plain), hex::encode(mac.as_ref())))
    }

    /// When a challenge of this node's expires.
    ///
    /// # Errors
    /// See [`ChallengeError`].
    pub fn check(&self, challenge: &str, node: &NodeId, now: Timestamp) -> Result<Timestamp, ChallengeError> {
        let mut bytes = [0; END_BYTES + RANDOM_BYTES + MAC_BYTES];
        hex::decode_to_slice(challenge, &mut bytes).map_err(|_| ChallengeError::NotOurs)?;
        let (plain, mac) = bytes.split_at(END_BYTES + RANDOM_BYTES);
        hmac::verify(&self.0, &said(plain, node), mac).map_err(|_| ChallengeError::NotOurs)?;
        let end_ms = plain[..END_BYTES].iter().fold(0_i64, |sum, byte| (sum << 8) | i64::from(*byte));
        let end = Timestamp::from_millisecond(end_ms).map_err(|_| ChallengeError::NotOurs)?;
        if now < end { Ok(end) } else { Err(ChallengeError::Expired) }
    }
}

impl fmt::Debug for ChallengeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChallengeKey(…)")
    }
}

fn said(plain: &[u8], node: &NodeId) -> Vec<u8> {
    [b"challenge\n", plain, node.to_string().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn node(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    #[test]
    fn a_challenge_is_good_for_its_node_for_its_time_at_its_sweeper() {
        let (here, there) = (ChallengeKey::new("one"), ChallengeKey::new("another"));
        let (mine, other) =
            (node("host:0123456789abcdef0123456789abcdef"), node("aws:123456789012:eu-central-1:i-0123456789abcdef0"));
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let end = now + LIFETIME;
        let challenge = here.give(&mine, now).unwrap();
        assert_ne!(challenge, here.give(&mine, now).unwrap());
        assert_eq!(here.check(&challenge, &mine, now), Ok(end));
        assert_eq!(here.check(&challenge, &mine, end - SignedDuration::from_millis(1)), Ok(end));
        assert_eq!(here.check(&challenge, &mine, end), Err(ChallengeError::Expired));
        assert_eq!(here.check(&challenge, &other, now), Err(ChallengeError::NotOurs));
        assert_eq!(there.check(&challenge, &mine, now), Err(ChallengeError::NotOurs));
        let later = format!("f{}", &challenge[1..]);
        for forged in [later.as_str(), "", &challenge[2..], "zz"] {
            assert_eq!(here.check(forged, &mine, now), Err(ChallengeError::NotOurs), "{forged}");
        }
    }
}
