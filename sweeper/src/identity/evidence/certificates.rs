//! Whose signature on an identity document is EC2's: certificates by region, AWS's published ones and those of the configuration.
//!
//! They are pinned: nothing inside a message adds one, no chain is built, and their ends, around the year 2200, are not looked at.

use bcder::{
    Mode, Tag,
    decode::{Constructed, DecodeError, Source},
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::LazyLock,
};

const PUBLISHED: &str = include_str!("aws_certificates.pem");

/// A public key as certificates hold it (`SubjectPublicKeyInfo`, DER).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubjectKey(Vec<u8>);

impl AsRef<[u8]> for SubjectKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file or the folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file holds no certificate, or something else.
    #[error("{} holds no certificates in PEM", path.display())]
    NotCertificates {
        /// Which.
        path: PathBuf,
    },
}

/// The keys of each region.
#[derive(Clone, Debug)]
pub(super) struct Certificates(BTreeMap<String, Vec<SubjectKey>>);

static BUILT_IN: LazyLock<BTreeMap<String, Vec<SubjectKey>>> = LazyLock::new(|| {
    let sections = PUBLISHED.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.map(|(region, pem)| (region.trim().to_owned(), keys(pem.as_bytes()).unwrap_or_default())).collect()
});

impl Certificates {
    /// AWS's published ones, and those in files `REGION.pem` of a folder beside them.
    pub(super) fn load(folder: Option<&Path>) -> Result<Self, CertificateError> {
        let mut certificates = BUILT_IN.clone();
        let Some(folder) = folder else { return Ok(Self(certificates)) };
        let cannot = |path: &Path| {
            let path = path.to_owned();
            move |source| CertificateError::Read { path, source }
        };
        for entry in fs::read_dir(folder).map_err(cannot(folder))? {
            let path = entry.map_err(cannot(folder))?.path();
            let Some(region) = path.extension().filter(|end| *end == "pem").and_then(|_| path.file_stem()) else {
                continue;
            };
            let region = region.to_string_lossy().into_owned();
            let pem = fs::read(&path).map_err(cannot(&path))?;
            let added = keys(&pem).filter(|added| !added.is_empty());
            let added = added.ok_or_else(|| CertificateError::NotCertificates { path: path.clone() })?;
            certificates.entry(region).or_default().extend(added);
        }
        Ok(Self(certificates))
    }

    pub(super) fn of(&self, region: &str) -> &[SubjectKey] {
        self.0.get(region).map_or(&[], Vec::as_slice)
    }
}

fn keys(pem: &[u8]) -> Option<Vec<SubjectKey>> {
    CertificateDer::pem_slice_iter(pem)
        .map(|certificate| Mode::Der.decode(certificate.ok()?.as_ref(), subject_key).ok())
        .collect()
}

/// RFC 5280, section 4.1.
fn subject_key<S: Source>(certificate: &mut Constructed<'_, S>) -> Result<SubjectKey, DecodeError<S::Error>> {
    certificate.take_sequence(|certificate| {
        let key = certificate.take_sequence(|to_be_signed| {
            to_be_signed.take_opt_constructed_if(Tag::CTX_0, |version| version.skip_all())?;
            for _serial_algorithm_issuer_validity_subject in 0..5 {
                to_be_signed.capture_one()?;
            }
            let key = to_be_signed.capture_one()?;
            to_be_signed.skip_all()?;
            Ok(SubjectKey(key.as_slice().to_vec()))
        })?;
        certificate.skip_all()?;
        Ok(key)
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};

    #[test]
    fn every_published_certificate_holds_an_rsa_key_and_each_region_has_its_own() {
        let certificates = Certificates::load(None).unwrap();
        assert_eq!(certificates.0.len(), PUBLISHED.matches("BEGIN CERTIFICATE").count());
        assert!(certificates.0.len() >= 39, "{:?}", certificates.0.keys());
        let mut seen = Vec::new();
        for (region, keys) in &certificates.0 {
            assert_eq!(keys.len(), 1, "{region}");
            assert!(ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, keys[0].as_ref()).is_ok(), "{region}");
            assert!(!seen.contains(&&keys[0]), "{region}");
            seen.push(&keys[0]);
        }
        assert!(certificates.of("moon-1").is_empty());
    }

    #[test]
    fn a_folder_adds_certificates_and_takes_none_away() {
        let folder = tempfile::tempdir().unwrap();
        let (_, one) = PUBLISHED.split_once("## us-west-2\n").unwrap();
        fs::write(folder.path().join("us-iso-east-1.pem"), one).unwrap();
        fs::write(folder.path().join("us-west-1.pem"), one).unwrap();
        fs::write(folder.path().join("README"), "not read").unwrap();
        let certificates = Certificates::load(Some(folder.path())).unwrap();
        assert_eq!(certificates.of("us-iso-east-1"), certificates.of("us-west-2"));
        assert_eq!(certificates.of("us-west-1").len(), 2);

        fs::write(folder.path().join("moon-1.pem"), "no certificate").unwrap();
        let error = Certificates::load(Some(folder.path())).unwrap_err().to_string();
        assert!(error.ends_with("moon-1.pem holds no certificates in PEM"), "{error}");
        assert!(Certificates::load(Some(&folder.path().join("none"))).is_err());
    }
}
