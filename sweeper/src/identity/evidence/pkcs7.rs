//! The one form of PKCS #7 in which EC2 signs identity documents, and nothing else of that standard.
//!
//! Accepted if and only if: one content of type *data*, in the message itself; one signer; SHA-256 and RSA (PKCS #1 v1.5); signed attributes
//! with exactly one content type (*data*) and one digest (that of the content); and a signature over these by one of the pinned keys.
//! Certificates inside the message, its signer identifier and unsigned attributes prove nothing and are skipped. EC2 writes BER with
//! indefinite lengths, so a reader of DER is not enough. Nesting is skipped without recursion; the caller bounds the length.

use super::certificates::SubjectKey;
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use bcder::{
    ConstOid, Mode, OctetString, Oid, Tag,
    decode::{Constructed, DecodeError, Source},
};
use sha2::{Digest as _, Sha256};
use std::convert::Infallible;

const SIGNED_DATA: ConstOid = Oid(&[42, 134, 72, 134, 247, 13, 1, 7, 2]);
const DATA: ConstOid = Oid(&[42, 134, 72, 134, 247, 13, 1, 7, 1]);
const CONTENT_TYPE: ConstOid = Oid(&[42, 134, 72, 134, 247, 13, 1, 9, 3]);
const MESSAGE_DIGEST: ConstOid = Oid(&[42, 134, 72, 134, 247, 13, 1, 9, 4]);
const SHA_256: ConstOid = Oid(&[96, 134, 72, 1, 101, 3, 4, 2, 1]);
const RSA: ConstOid = Oid(&[42, 134, 72, 134, 247, 13, 1, 1, 1]);
const RSA_WITH_SHA_256: ConstOid = Oid(&[42, 134, 72, 134, 247, 13, 1, 1, 11]);

/// Why a message says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Pkcs7Error {
    #[error("it is no PKCS #7 message of the kind that EC2 signs")]
    Malformed,
    #[error("its signature is not EC2's")]
    Forged,
}

impl From<DecodeError<Infallible>> for Pkcs7Error {
    fn from(_: DecodeError<Infallible>) -> Self {
        Self::Malformed
    }
}

struct Signed {
    content: Vec<u8>,
    /// The attributes, without the tag and length of their set.
    attributes: Vec<u8>,
    signature: Vec<u8>,
}

/// The content, if one of these keys signed it.
pub(super) fn verified_content(message: &[u8], keys: &[SubjectKey]) -> Result<Vec<u8>, Pkcs7Error> {
    // The decoder stops behind the first value.
    let whole = Mode::Ber.decode(message, |message| message.capture_one())?;
    if whole.as_slice().len() != message.len() {
        return Err(Pkcs7Error::Malformed);
    }
    let signed = Mode::Ber.decode(message, signed_data)?;
    let digest = Mode::Der.decode(signed.attributes.as_slice(), digest_in)?;
    if digest[..] != Sha256::digest(&signed.content)[..] {
        return Err(Pkcs7Error::Forged);
    }
    let set = as_set(&signed.attributes);
    let is_signed_by = |key: &SubjectKey| {
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.as_ref()).verify(&set, &signed.signature).is_ok()
    };
    if keys.iter().any(is_signed_by) { Ok(signed.content) } else { Err(Pkcs7Error::Forged) }
}

fn signed_data<S: Source>(message: &mut Constructed<'_, S>) -> Result<Signed, DecodeError<S::Error>> {
    message.take_sequence(|message| {
        SIGNED_DATA.skip_if(message)?;
        message.take_constructed_if(Tag::CTX_0, |message| {
            message.take_sequence(|data| {
                data.skip_u8_if(1)?;
                data.take_set(|algorithms| algorithms.skip_all())?;
                let content = data.take_sequence(|content| {
                    DATA.skip_if(content)?;
                    content.take_constructed_if(Tag::CTX_0, OctetString::take_from)
                })?;
                for certificates_or_revoked in [Tag::CTX_0, Tag::CTX_1] {
                    data.take_opt_constructed_if(certificates_or_revoked, |skipped| skipped.skip_all())?;
                }
                // A second signer leaves something behind in the set, which is an error.
                let (attributes, signature) = data.take_set(|signers| signers.take_sequence(signer))?;
                Ok(Signed { content: content.to_bytes().to_vec(), attributes, signature })
            })
        })
    })
}

/// Serial number and signature of a signer.
type Signer = (Vec<u8>, Vec<u8>);

fn signer<S: Source>(signer: &mut Constructed<'_, S>) -> Result<Signer, DecodeError<S::Error>> {
    signer.skip_u8_if(1)?;
    // Issuer and serial number: whose key it is said to be.
    signer.take_sequence(|said| said.skip_all())?;
    signer.take_sequence(|algorithm| {
        SHA_256.skip_if(algorithm)?;
        algorithm.skip_all()
    })?;
    let attributes = signer.take_constructed_if(Tag::CTX_0, |attributes| attributes.capture_all())?;
    signer.take_sequence(|algorithm| {
        let oid = Oid::take_from(algorithm)?;
        if oid != RSA && oid != RSA_WITH_SHA_256 {
            return Err(algorithm.content_err("another signature than RSA with SHA-256"));
        }
        algorithm.skip_all()
    })?;
    let signature = OctetString::take_from(signer)?;
    signer.take_opt_constructed_if(Tag::CTX_1, |unsigned| unsigned.skip_all())?;
    Ok((attributes.as_slice().to_vec(), signature.to_bytes().to_vec()))
}

/// The digest that the attributes name.
fn digest_in<S: Source>(attributes: &mut Constructed<'_, S>) -> Result<Vec<u8>, DecodeError<S::Error>> {
    let (mut types, mut digests) = (0, Vec::new());
    while let Some(()) = attributes.take_opt_sequence(|attribute| {
        let oid = Oid::take_from(attribute)?;
        attribute.take_set(|values| {
            if oid == CONTENT_TYPE {
                types += 1;
                DATA.skip_if(values)
            } else if oid == MESSAGE_DIGEST {
                digests.push(OctetString::take_from(values)?.to_bytes().to_vec());
                Ok(())
            } else {
                values.skip_all()
            }
        })
    })? {}
    match (types, digests.pop()) {
        (1, Some(digest)) if digests.is_empty() => Ok(digest),
        _ => Err(attributes.content_err("not exactly one content type and one digest")),
    }
}

/// What is signed is the attributes as a DER set: RFC 5652, section 5.4.
fn as_set(attributes: &[u8]) -> Vec<u8> {
    let length = attributes.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut set = vec![0x31];
    // From 128 on the length is preceded by the number of its bytes, which is at most eight.
    if attributes.len() > 127 {
        set.extend(u8::try_from(length.len()).map(|bytes| 0x80 | bytes));
    }
    set.extend_from_slice(length);
    set.extend_from_slice(attributes);
    set
}

#[cfg(test)]
#[path = "pkcs7_tests.rs"]
mod tests;
