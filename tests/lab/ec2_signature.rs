//! Signs identity documents in the form of EC2's `rsa2048`, with a key of the tests' own.
//!
//! The form (BER, indefinite lengths, four signed attributes, no certificate inside) is that of documents which EC2 really signed; the sweeper's
//! own tests verify two of these with the same code. Its parts can be put together wrongly, too.

use aws_lc_rs::{
    digest,
    encoding::{AsDer as _, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};

const SIGNED_DATA: &[u8] = &[6, 9, 42, 134, 72, 134, 247, 13, 1, 7, 2];
const DATA: &[u8] = &[6, 9, 42, 134, 72, 134, 247, 13, 1, 7, 1];
const CONTENT_TYPE: &[u8] = &[6, 9, 42, 134, 72, 134, 247, 13, 1, 9, 3];
const MESSAGE_DIGEST: &[u8] = &[6, 9, 42, 134, 72, 134, 247, 13, 1, 9, 4];
/// The identifier of SHA-256, with parameters.
pub const SHA_256_ID: &[u8] = &[48, 13, 6, 9, 96, 134, 72, 1, 101, 3, 4, 2, 1, 5, 0];
/// The identifier of RSA with SHA-256, with parameters.
pub const RSA_WITH_SHA_256_ID: &[u8] = &[48, 13, 6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 11, 5, 0];
const END: &[u8] = &[0, 0];

/// One value with its tag and a definite length.
#[must_use]
pub fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [.., high, low] = content.len().to_be_bytes();
    let length = match content.len() {
        0..=127 => vec![low],
        128..=255 => vec![0x81, low],
        _ => vec![0x82, high, low],
    };
    [&[tag], length.as_slice(), &content].concat()
}

/// One constructed value of indefinite length.
#[must_use]
pub fn indefinite(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    [&[tag, 0x80], parts.concat().as_slice(), END].concat()
}

/// The two signed attributes that matter: a content type and the digest of a content.
#[must_use]
pub fn attributes(content: &[u8]) -> Vec<u8> {
    let digest = digest::digest(&digest::SHA256, content);
    let of_type = value(48, &[CONTENT_TYPE, &value(49, &[DATA])]);
    [of_type, value(48, &[MESSAGE_DIGEST, &value(49, &[&value(4, &[digest.as_ref()])])])].concat()
}

/// The whole message around signers; `content` is none where it is detached.
#[must_use]
pub fn signed_data(content: Option<&[u8]>, certificates: &[u8], signers: &[u8]) -> Vec<u8> {
    let content = content.map(|content| indefinite(0xa0, &[&indefinite(0x24, &[&value(4, &[content])])]));
    let content = indefinite(48, &[DATA, &content.unwrap_or_default()]);
    let data = indefinite(48, &[&[2, 1, 1], &value(49, &[SHA_256_ID]), &content, certificates, &value(49, &[signers])]);
    indefinite(48, &[SIGNED_DATA, &indefinite(0xa0, &[&data])])
}

/// Signs in EC2's place.
#[derive(Debug)]
pub struct Signer(KeyPair);

impl Signer {
    /// With a new RSA key of 2,048 bits.
    ///
    /// # Panics
    ///
    /// When the system gives no random bytes.
    #[must_use]
    pub fn generate() -> Self {
        Self(KeyPair::generate(KeySize::Rsa2048).expect("an RSA key"))
    }

    /// Its certificate in DER; nobody looks at the signature on it.
    ///
    /// # Panics
    ///
    /// Never: a key that was made can be written.
    #[must_use]
    pub fn certificate(&self) -> Vec<u8> {
        let key: PublicKeyX509Der<'_> = self.0.public_key().as_der().expect("a public key");
        let nobody = value(48, &[]);
        let validity = value(48, &[&value(23, &[b"260101000000Z"]), &value(23, &[b"360101000000Z"])]);
        let parts = [&[2, 1, 1][..], RSA_WITH_SHA_256_ID, &nobody, &validity, &nobody, key.as_ref()];
        value(48, &[&value(48, &parts), RSA_WITH_SHA_256_ID, &value(3, &[&[0]])])
    }

    /// Its certificate as configuration takes it.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        let text = STANDARD.encode(self.certificate());
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines(&text))
    }

    /// A bare signature.
    ///
    /// # Panics
    ///
    /// When the system gives no random bytes.
    #[must_use]
    pub fn signature(&self, text: &[u8]) -> Vec<u8> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).expect("a signature");
        signature
    }

    /// Modulus and exponent of its public key, without leading zeros.
    ///
    /// # Panics
    ///
    /// Never: the public key of 2,048 bits has one length.
    #[must_use]
    pub fn numbers(&self) -> (Vec<u8>, Vec<u8>) {
        // `RSAPublicKey`: a sequence of two integers, the first with a zero before its 256 bytes.
        let key = self.0.public_key().as_ref();
        let (head, modulus) = key.split_at(9);
        assert_eq!(head[4..], [2, 0x82, 1, 1, 0], "{head:?}");
        (modulus[..256].to_vec(), modulus[258..].to_vec())
    }

    /// One signer's part of a message, over these attributes.
    #[must_use]
    pub fn signer(&self, attributes: &[u8]) -> Vec<u8> {
        let signature = self.signature(&value(49, &[attributes]));
        let said = value(48, &[&value(48, &[]), &[2, 1, 1]]);
        let attributes = value(0xa0, &[attributes]);
        value(48, &[&[2, 1, 1], &said, SHA_256_ID, &attributes, RSA_WITH_SHA_256_ID, &value(4, &[&signature])])
    }

    /// What `/latest/dynamic/instance-identity/rsa2048` answers for a document.
    #[must_use]
    pub fn sign(&self, document: &[u8]) -> String {
        lines(&STANDARD.encode(signed_data(Some(document), &[], &self.signer(&attributes(document)))))
    }
}

fn lines(text: &str) -> String {
    text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n")
}
