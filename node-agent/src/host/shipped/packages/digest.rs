//! What a package says that a file held.

use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::io::{self, Read};

/// rpm's numbers of the algorithms are OpenPGP's: <https://www.rfc-editor.org/rfc/rfc9580#section-9.5>.
const RPM_MD5: u32 = 1;
const RPM_SHA256: u32 = 8;

/// The digest of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digest {
    /// dpkg's, and that of packages for an rpm before 4.14.
    Md5([u8; 16]),
    Sha256([u8; 32]),
}

impl Digest {
    pub(super) fn md5(digits: impl AsRef<[u8]>) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).ok().map(|()| Self::Md5(bytes))
    }

    /// `None` for algorithms that no current distribution uses, and for files whose content no package vouches for.
    pub(super) fn of_rpm(algorithm: u32, digits: &[u8]) -> Option<Self> {
        match algorithm {
            RPM_MD5 => Self::md5(digits),
            RPM_SHA256 => {
                let mut bytes = [0; 32];
                hex::decode_to_slice(digits, &mut bytes).ok().map(|()| Self::Sha256(bytes))
            }
            _ => None,
        }
    }

    /// Whether this is the digest of what `content` has to say.
    pub(super) fn fits(&self, mut content: impl Read) -> io::Result<bool> {
        Ok(match self {
            Self::Md5(digest) => {
                let mut hash = Md5::new();
                io::copy(&mut content, &mut hash)?;
                hash.finalize()[..] == digest[..]
            }
            Self::Sha256(digest) => {
                let mut hash = Sha256::new();
                io::copy(&mut content, &mut hash)?;
                hash.finalize()[..] == digest[..]
            }
        })
    }
}
