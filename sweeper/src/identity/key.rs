//! The key that is bound to a node, and what it signs.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use heartbeat::attestation::{PUBLIC_KEY_BYTES, signed_text};
use sha2::{Digest as _, Sha256};
use std::{fmt, str::FromStr};

/// An Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; PUBLIC_KEY_BYTES]);

/// Why a join proves no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no key.
    #[error("the public key is not {PUBLIC_KEY_BYTES} bytes in hexadecimal digits")]
    NotAKey,
    /// The signature is not that of this key over this body.
    #[error("the signature is not that of the public key over this body")]
    Signature,
}

impl PublicKey {
    /// Checks the signature of a join's body.
    ///
    /// # Errors
    /// [`KeyError::Signature`] for every signature but the right one.
    pub fn verify(&self, body: &[u8], signature: &str) -> Result<(), KeyError> {
        let signature = hex::decode(signature).map_err(|_| KeyError::Signature)?;
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(&signed_text(body), &signature).map_err(|_| KeyError::Signature)
    }

    /// 16 hexadecimal digits by which people tell keys apart.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(&Sha256::digest(self.0)[..8])
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; PUBLIC_KEY_BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError::NotAKey)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

    #[test]
    fn only_the_keys_own_signature_over_the_whole_body_is_taken() {
        let pair = Ed25519KeyPair::generate().unwrap();
        let other = Ed25519KeyPair::generate().unwrap();
        let key: PublicKey = hex::encode(pair.public_key().as_ref()).parse().unwrap();
        let sign = |pair: &Ed25519KeyPair, text: &[u8]| hex::encode(pair.sign(text));
        let good = sign(&pair, &signed_text(b"{}"));
        assert_eq!(key.verify(b"{}", &good), Ok(()));
        for (body, signature) in [
            (&b"{ }"[..], good.clone()),
            (b"{}", sign(&other, &signed_text(b"{}"))),
            (b"{}", sign(&pair, b"{}")),
            (b"{}", good[2..].to_owned()),
            (b"{}", String::new()),
            (b"{}", "not hexadecimal".to_owned()),
        ] {
            assert_eq!(key.verify(body, &signature), Err(KeyError::Signature), "{signature}");
        }
    }

    #[test]
    fn a_key_survives_a_round_trip_and_what_is_none_is_refused() {
        let text = "0123456789abcdef".repeat(4);
        assert_eq!(text.parse::<PublicKey>().map(|key| key.to_string()), Ok(text.clone()));
        for no_key in ["", "00", &text[1..], &text.replace('0', "g")] {
            assert_eq!(no_key.parse::<PublicKey>(), Err(KeyError::NotAKey), "{no_key}");
        }
    }
}
