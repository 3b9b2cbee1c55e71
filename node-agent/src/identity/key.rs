//! The key by which the sweeper knows this node again: made once, kept in the state directory, never sent.

use aws_lc_rs::{
    encoding::{AsDer as _, Pkcs8V1Der},
    signature::{Ed25519KeyPair, KeyPair as _},
};
use heartbeat::attestation::signed_text;
use secrecy::SecretString;
use std::fmt;

/// An Ed25519 key pair.
pub struct NodeKey(Ed25519KeyPair);

/// The cryptography library refused: it has no random bytes, or these are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no key could be made or read")]
pub struct NoKey;

impl NodeKey {
    /// Makes a new one.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn generate() -> Result<Self, NoKey> {
        Ed25519KeyPair::generate().map(Self).map_err(|_| NoKey)
    }

    /// Reads what [`NodeKey::to_text`] wrote.
    ///
    /// # Errors
    /// If it is no key.
    pub fn from_text(text: &str) -> Result<Self, NoKey> {
        let bytes = hex::decode(text.trim()).map_err(|_| NoKey)?;
        Ed25519KeyPair::from_pkcs8(&bytes).map(Self).map_err(|_| NoKey)
    }

    /// The private key (PKCS #8) in hexadecimal digits, for the state directory alone.
    ///
    /// # Errors
    /// If the cryptography library fails.
    pub fn to_text(&self) -> Result<SecretString, NoKey> {
        let der: Pkcs8V1Der<'_> = self.0.as_der().map_err(|_| NoKey)?;
        Ok(SecretString::from(hex::encode(der.as_ref())))
    }

    /// The public key in hexadecimal digits.
    #[must_use]
    pub fn public(&self) -> String {
        hex::encode(self.0.public_key().as_ref())
    }

    /// The signature of a join's body, in hexadecimal digits.
    #[must_use]
    pub fn sign_join(&self, body: &[u8]) -> String {
        hex::encode(self.0.sign(&signed_text(body)))
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeKey(public {})", self.public())
    }
}
