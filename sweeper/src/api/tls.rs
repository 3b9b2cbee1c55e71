//! TLS by a certificate and a key in files, which are read again when they change: whoever renews them restarts nothing.

use crate::watched::Watched;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};
use sha2::{Digest as _, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

/// Counts pairs of files that were refused.
pub(super) const REFUSED: &str = "tls_refused_total";

/// Why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds no PEM of that kind.
    #[error("{} cannot be read; `{key}` names a PEM file", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Which setting names it.
        key: &'static str,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The certificate and the key do not fit each other, or are of a kind that TLS does not know.
    #[error("the certificate in {} and the key in {} cannot be used", certificate.display(), key.display())]
    Pair {
        /// `api.tls_certificate`
        certificate: PathBuf,
        /// `api.tls_key`
        key: PathBuf,
        /// What is wrong with them.
        source: rustls::Error,
    },
}

/// What is shown to whoever connects.
struct Shown {
    /// SHA-256 of the certificate chain, in hexadecimal digits.
    sha256: String,
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

/// A key is bound to its certificate: the same chain is the same pair.
impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

/// The server's side of TLS.
#[derive(Debug)]
pub struct Tls(Watched<Shown, TlsError>);

impl Tls {
    /// Reads both files for the first time: a certificate with those that lead from it to a root, and its key.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let watched = Watched::open(vec![certificate.to_owned(), key.to_owned()], |files| read(&files[0], &files[1]))?;
        tracing::info!(certificate = %certificate.display(), sha256 = watched.current().sha256, "speaking TLS");
        Ok(Self(watched))
    }

    /// By what was last accepted.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.current().config)
    }

    /// Reads the files again whenever they have changed, until `stop`. What cannot be used leaves what was before.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let told = |news: Result<Arc<Shown>, TlsError>| match news {
            Ok(shown) => tracing::info!(sha256 = shown.sha256, "a new certificate is shown from now on"),
            Err(error) => {
                metrics::counter!(REFUSED).increment(1);
                let sha256 = &self.0.current().sha256;
                tracing::error!(error = %crate::chain(&error), sha256, "this certificate is shown further on");
            }
        };
        self.0.watch(stop, told).await;
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Shown, TlsError> {
    let unreadable = |path: &Path, key, source| TlsError::Read { path: path.to_owned(), key, source };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unreadable(certificate, "api.tls_certificate", error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, "api.tls_key", error))?;
    let mut digest = Sha256::new();
    chain.iter().for_each(|certificate| digest.update(certificate));
    let sha256 = hex::encode(digest.finalize());
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, private);
    let mut config = config.map_err(|source| {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        TlsError::Pair { certificate, key, source }
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Shown { sha256, config: Arc::new(config) })
}
