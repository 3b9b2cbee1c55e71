//! One project, ready to be asked: the clients, and a bucket for each of the provider's own that all its lists share.

use std::future::Future;

use super::{Options, Session, session::Clients};
use crate::inventory::{
    Failure, Kind, Progress, Scope,
    reader::{Api, Limiters, Page, Reader, Refused},
};

impl Api {
    /// A call of Google Cloud. What a project may ask of Compute Engine a minute is shown in its console alone, and is
    /// shared with whoever works there; ten a second is far below every number that was ever published.
    /// <https://docs.cloud.google.com/compute/docs/api-rate-limits>
    pub(super) const fn google(name: &'static str, bucket: &'static str) -> Self {
        Self::new(name, bucket, 10, 20)
    }
}

/// Where to ask, and who is told.
pub(super) struct Place<'a> {
    pub(super) session: &'a Session,
    pub(super) scope: &'a Scope,
    progress: &'a dyn Progress,
    limiters: Limiters,
}

impl<'a> Place<'a> {
    pub(super) fn new(session: &'a Session, scope: &'a Scope, progress: &'a dyn Progress) -> Self {
        Self { session, scope, progress, limiters: Limiters::default() }
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
    pub(super) fn told(&self, kind: impl Into<Kind>, listed: usize) {
        self.progress.page(self.scope, kind.into(), listed);
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
        let reader = Reader {
            limiter: &self.limiters.of(api),
            credentials: self.session.credentials.generation(),
            retry: &self.options().retry,
            setting: "gcp.listing_timeout",
        };
        reader.pages(api, |_| {}, call).await
    }
}
