//! A certificate for this host's loopback address, and an authority made for it alone.

use crate::binaries;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A folder with a certificate, its key, and the authority's certificate.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes all of them.
    ///
    /// # Panics
    ///
    /// When they cannot be made.
    #[must_use]
    pub fn make(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).expect("the folder of the certificates can be made");
        let made = Self { folder: folder.to_owned() };
        made.renew();
        made
    }

    /// Makes certificate and key anew, first the one and then the other; the authority stays.
    ///
    /// # Panics
    ///
    /// When they cannot be made.
    pub fn renew(&self) {
        let mut command = Command::new(binaries::python("python"));
        command.arg(binaries::checkout().join("tests/lab/python/certificates.py")).arg(&self.folder);
        assert!(command.status().expect("Python starts").success(), "no certificate was made");
    }

    /// The authority's certificate.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// The certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.join("server.key")
    }
}
