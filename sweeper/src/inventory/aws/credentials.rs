//! Credentials that are kept until they are about to expire, and can be discarded before that.
//!
//! The SDK has a cache of its own, but no way to tell it that the provider has just called these credentials expired
//! (a clock that is off, a session that was revoked). So its cache is switched off, and each call asks here: one lock and
//! one copy. However many calls find them expired at once, they are fetched anew once.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, Result as Found, SharedCredentialsProvider, future},
};
use tokio::sync::Mutex;

use crate::inventory::reader::Generation;

/// Fetched anew so long before they expire: two attempts of a call fit into it.
const BEFORE_EXPIRY: Duration = Duration::from_secs(60);

/// Cheap to clone; all clones share the same credentials.
#[derive(Clone, Debug)]
pub(super) struct Renewable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: SharedCredentialsProvider,
    held: Mutex<Option<Held>>,
    generation: Generation,
}

#[derive(Debug)]
struct Held {
    credentials: Credentials,
    generation: u64,
}

impl Renewable {
    pub(super) fn new(source: SharedCredentialsProvider) -> Self {
        Self(Arc::new(Inner { source, held: Mutex::new(None), generation: Generation::default() }))
    }

    /// Which credentials are in use, and the way to discard them.
    pub(super) fn generation(&self) -> &Generation {
        &self.0.generation
    }

    async fn credentials(&self) -> Found {
        let mut held = self.0.held.lock().await;
        let generation = self.0.generation.current();
        let lasting = |held: &Held, time: SystemTime| held.credentials.expiry().is_none_or(|expiry| expiry > time);
        let now = SystemTime::now();
        let good = held.as_ref().filter(|held| held.generation == generation && lasting(held, now));
        if let Some(good) = good.filter(|held| lasting(held, now + BEFORE_EXPIRY)) {
            return Ok(good.credentials.clone());
        }
        match (self.0.source.provide_credentials().await, good) {
            (Ok(credentials), _) => {
                *held = Some(Held { credentials: credentials.clone(), generation });
                Ok(credentials)
            }
            // They last a little longer, and the next call asks again.
            (Err(_), Some(good)) => Ok(good.credentials.clone()),
            (Err(error), None) => Err(error),
        }
    }
}

impl ProvideCredentials for Renewable {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.credentials())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_credential_types::provider::error::CredentialsError;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Numbers the credentials that it gives out, each of which lasts so long.
    #[derive(Debug)]
    struct Source {
        given: AtomicU64,
        lasting: Option<Duration>,
        fails_later: bool,
    }

    impl ProvideCredentials for Source {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let number = self.given.fetch_add(1, Ordering::SeqCst);
            if number > 0 && self.fails_later {
                return future::ProvideCredentials::ready(Err(CredentialsError::provider_error("no answer")));
            }
            let expiry = self.lasting.map(|lasting| SystemTime::now() + lasting);
            future::ProvideCredentials::ready(Ok(Credentials::new(format!("KEY{number}"), "", None, expiry, "test")))
        }
    }

    fn renewable(lasting: Option<Duration>) -> Renewable {
        let source = Source { given: AtomicU64::new(0), lasting, fails_later: false };
        Renewable::new(SharedCredentialsProvider::new(source))
    }

    async fn key(renewable: &Renewable) -> String {
        renewable.provide_credentials().await.expect("credentials").access_key_id().to_owned()
    }

    #[tokio::test]
    async fn they_are_kept_until_they_are_about_to_expire() {
        for (lasting, second) in [(None, "KEY0"), (Some(3_600), "KEY0"), (Some(30), "KEY1")] {
            let renewable = renewable(lasting.map(Duration::from_secs));
            assert_eq!(key(&renewable).await, "KEY0");
            assert_eq!(key(&renewable).await, second, "{lasting:?}");
        }
    }

    #[tokio::test]
    async fn the_last_minute_is_used_where_there_are_no_new_ones() {
        let source = Source { given: AtomicU64::new(0), lasting: Some(Duration::from_secs(30)), fails_later: true };
        let renewable = Renewable::new(SharedCredentialsProvider::new(source));
        assert_eq!(key(&renewable).await, "KEY0");
        assert_eq!(key(&renewable).await, "KEY0");
        renewable.generation().discard(renewable.generation().current());
        assert!(renewable.provide_credentials().await.is_err(), "the provider called them expired");
    }

    #[tokio::test]
    async fn calls_that_find_them_expired_at_once_renew_them_once() {
        let renewable = renewable(None);
        assert_eq!(key(&renewable).await, "KEY0");
        let generation = renewable.generation().current();
        for _ in 0..8 {
            renewable.clone().generation().discard(generation);
        }
        assert_eq!(key(&renewable).await, "KEY1");
        renewable.generation().discard(generation);
        assert_eq!(key(&renewable).await, "KEY1", "a call that began before the renewal came late");
    }
}
