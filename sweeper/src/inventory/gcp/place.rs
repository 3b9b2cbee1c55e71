//! One project, ready to be asked: the clients, and a bucket for each of the provider's own that all its lists share.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Options, Session, session::Clients};
use crate::inventory::{
    Failure, Kind, Progress, Scope,
    aws::{
        failure::Refused,
        limit::{Api, Limiter},
        pages::{Page, Reader},
    },
};

/// Where to ask, and who is told.
pub(super) struct Place<'a> {
    pub(super) session: &'a Session,
    pub(super) scope: &'a Scope,
    progress: &'a dyn Progress,
    limiters: Mutex<BTreeMap<&'static str, Arc<Limiter>>>,
}

impl<'a> Place<'a> {
    pub(super) fn new(session: &'a Session, scope: &'a Scope, progress: &'a dyn Progress) -> Self {
        Self { session, scope, progress, limiters: Mutex::default() }
    }

    pub(super) fn project(&self) -> &str {
        &self.scope.account
    }

    pub(super) fn clients(&self) -> &Clients {
        &self.session.clients
    }

    pub(super) fn options(&self) -> &Options {
        &self.session.options
    }

    /// Tells of so many resources more.
    pub(super) fn told(&self, kind: Kind, listed: usize) {
        self.progress.page(self.scope, kind, listed);
    }

    /// All items of a list, however many pages it has.
    ///
    /// # Errors
    /// The refusal that nothing helped against. Half a list is never given.
    pub(super) async fn pages<T, F, Fut>(&self, api: Api, call: F) -> Result<Vec<T>, Failure>
    where
        F: FnMut(Option<String>) -> Fut,
        Fut: Future<Output = Result<Page<T>, Refused>>,
    {
        let limiter = {
            let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(limiters.entry(api.bucket).or_insert_with(|| Arc::new(Limiter::new(api))))
        };
        let reader = Reader {
            limiter: &limiter,
            credentials: &self.session.credentials,
            patience: &self.options().patience,
            setting: "gcp.listing_timeout",
        };
        reader.pages(api, |_| {}, call).await
    }
}
