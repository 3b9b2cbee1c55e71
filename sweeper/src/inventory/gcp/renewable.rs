//! Credentials that can be discarded before they expire.
//!
//! Google's library keeps a token until shortly before its end, and has no way to be told that it is not taken any more (it was
//! revoked, or a clock is off). So what is discarded here is the whole of its credentials, cache included: the next call finds them
//! anew.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{Extensions, HeaderMap};
use google_cloud_auth::{
    build_errors::Error as BuildError,
    credentials::{CacheableResource, Credentials, CredentialsProvider},
    errors::CredentialsError,
};

use crate::inventory::reader::Generation;

/// Finds credentials; called within a runtime, for they renew themselves in the background.
pub type Source = fn() -> Result<Credentials, BuildError>;

/// Cheap to clone; all clones share the same credentials.
#[derive(Clone, Debug)]
pub(super) struct Renewable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    held: Mutex<Held>,
    generation: Generation,
}

#[derive(Debug)]
struct Held {
    credentials: Credentials,
    generation: u64,
}

impl Renewable {
    pub(super) fn new(source: Source) -> Result<Self, BuildError> {
        let held = Mutex::new(Held { credentials: source()?, generation: 0 });
        Ok(Self(Arc::new(Inner { source, held, generation: Generation::default() })))
    }

    /// Which credentials are in use, and the way to discard them.
    pub(super) fn generation(&self) -> &Generation {
        &self.0.generation
    }

    fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.0.generation.current();
        if held.generation != generation {
            let credentials = (self.0.source)().map_err(|error| CredentialsError::from_source(false, error))?;
            *held = Held { credentials, generation };
        }
        Ok(held.credentials.clone())
    }
}

impl CredentialsProvider for Renewable {
    async fn headers(&self, extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        self.credentials()?.headers(extensions).await
    }

    async fn universe_domain(&self) -> Option<String> {
        self.credentials().ok()?.universe_domain().await
    }
}
