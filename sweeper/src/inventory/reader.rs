//! Reads a list page by page to its end, or says why it cannot be read. One loop for every API that lists.
//!
//! What a refusal is answered with depends on its type: too many calls → slower, and again; expired credentials → new
//! ones, once for each page, and the same page again with the same token; a token that is not taken any more → the whole
//! list again, once; a failing server, a silent or a broken connection → again. Anything else, a missing permission above
//! all, is final at once. Waits are drawn at random below a bound that doubles (full jitter). However long the list is,
//! it ends after [`RetryPolicy::listing_timeout`], so that a sweep ends.

mod limit;
mod refused;

use std::{
    collections::HashSet,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use notifier::retry::full_jitter;

use super::{Failure, FailureKind};

pub(super) use limit::{Api, Limiter, Limiters};
pub(super) use refused::{Refused, Remedy};

/// One page, and the token of the next one.
pub(super) type Page<T> = (Vec<T>, Option<String>);

/// How long something is tried.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// A page is asked for so often before its list fails.
    pub attempts: u32,
    /// Upper bound of the first wait; it doubles with each attempt. Twice as long where there were too many calls.
    pub base_wait: Duration,
    /// Upper bound of every wait.
    pub longest_wait: Duration,
    /// For one whole list.
    pub listing_timeout: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            // Five waits of 0.5 to 8 s at most, 1 to 16 s where there were too many calls: time for 150 tokens of EC2.
            attempts: 6,
            base_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
            // 50,000 instances at AWS's own pace are 50 pages of 1 to 2 s.
            listing_timeout: Duration::from_secs(300),
        }
    }
}

/// What a list is read with.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) limiter: &'a Limiter,
    pub(super) credentials: &'a Generation,
    pub(super) retry: &'a RetryPolicy,
    /// The key of [`RetryPolicy::listing_timeout`] in the configuration.
    pub(super) setting: &'static str,
}

/// How often credentials were discarded, because a provider called them expired before their time.
#[derive(Debug, Default)]
pub(super) struct Generation(AtomicU64);

impl Generation {
    /// Which credentials a call that begins now will use.
    pub(super) fn current(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Discards those credentials; if they were discarded before, nothing changes.
    pub(super) fn discard(&self, generation: u64) {
        let next = generation.saturating_add(1);
        // A lost race means that another call has discarded them.
        let _ = self.0.compare_exchange(generation, next, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Reader<'_> {
    /// All items of all pages. `call` asks for one page, given its token; `told` hears of the size of each.
    pub(super) async fn pages<T, F, Fut>(&self, api: Api, told: impl Fn(usize), mut call: F) -> Result<Vec<T>, Failure>
    where
        F: FnMut(Option<String>) -> Fut,
        Fut: Future<Output = Result<Page<T>, Refused>>,
    {
        let read = async {
            let refused = match self.to_the_end(&told, &mut call).await {
                Err(refused) if refused.remedy == Remedy::NewList => refused,
                read => return read,
            };
            tracing::info!(api = api.name, reason = %refused.why, "a page token is not taken any more: the list is read anew");
            self.to_the_end(&told, &mut call).await
        };
        let limit = self.retry.listing_timeout;
        match tokio::time::timeout(limit, read).await {
            Ok(read) => read.map_err(|refused| refused.why),
            Err(_) => Err(Failure {
                kind: FailureKind::TimedOut,
                message: format!("not read to its end within {} s ({})", limit.as_secs_f32(), self.setting),
            }),
        }
    }

    async fn to_the_end<T, F, Fut>(&self, told: &impl Fn(usize), call: &mut F) -> Result<Vec<T>, Refused>
    where
        F: FnMut(Option<String>) -> Fut,
        Fut: Future<Output = Result<Page<T>, Refused>>,
    {
        let mut items = Vec::new();
        let mut seen = HashSet::new();
        let mut token: Option<String> = None;
        loop {
            let (page, next) = self.page(token, call).await?;
            told(page.len());
            items.extend(page);
            match next.filter(|next| !next.is_empty()) {
                None => return Ok(items),
                // A token that comes twice would go round for ever.
                Some(next) if seen.insert(next.clone()) => token = Some(next),
                Some(_) => return Err(Refused::malformed("a page token came twice")),
            }
        }
    }

    async fn page<T, F, Fut>(&self, token: Option<String>, call: &mut F) -> Result<Page<T>, Refused>
    where
        F: FnMut(Option<String>) -> Fut,
        Fut: Future<Output = Result<Page<T>, Refused>>,
    {
        let (mut failed, mut renewed) = (0, false);
        loop {
            self.limiter.ready().await;
            let credentials = self.credentials.current();
            let refused = match call(token.clone()).await {
                Ok(page) => return Ok(page),
                Err(refused) => refused,
            };
            let base = match refused.remedy {
                Remedy::NewCredentials if !renewed => {
                    renewed = true;
                    self.credentials.discard(credentials);
                    continue;
                }
                Remedy::Slower => {
                    self.limiter.refused();
                    self.retry.base_wait.saturating_mul(2)
                }
                Remedy::Again => self.retry.base_wait,
                // The first page has no token that could be wrong.
                Remedy::NewList if token.is_none() => return Err(Refused { remedy: Remedy::None, ..refused }),
                Remedy::NewCredentials | Remedy::NewList | Remedy::None => return Err(refused),
            };
            if failed + 1 >= self.retry.attempts {
                return Err(refused);
            }
            let wait = full_jitter(failed, base, self.retry.longest_wait, &mut rand::rng());
            failed += 1;
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests;
