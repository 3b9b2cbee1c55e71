//! What is read of AWS, and how patiently.

use std::time::Duration;

use super::Role;
use crate::inventory::RetryPolicy;

/// How to read AWS.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the account that the base credentials are of is read.
    pub own_account: bool,
    /// Other accounts.
    pub roles: Vec<Role>,
    /// Empty: every region that is enabled for the account.
    pub regions: Vec<String>,
    /// Instances per page; EC2 allows 5 to 1,000.
    pub page_size: i32,
    /// So many scopes are read side by side, over all accounts.
    pub scopes_at_once: usize,
    /// How long a list is tried.
    pub retry: RetryPolicy,
    /// For one attempt of one call.
    pub attempt_timeout: Duration,
    /// For one call of STS or the price list with all its attempts.
    pub call_timeout: Duration,
    /// For finding credentials. Off EC2 the last place to look is a metadata service that nobody answers for.
    pub credentials_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            own_account: true,
            roles: Vec::new(),
            regions: Vec::new(),
            page_size: 1_000,
            // An account has 17 regions unless more are switched on; a page of 1,000 instances is about 3 MB.
            scopes_at_once: 16,
            retry: RetryPolicy::default(),
            attempt_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            credentials_timeout: Duration::from_secs(10),
        }
    }
}
