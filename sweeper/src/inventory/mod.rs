//! What the providers bill for: facts *and* errors.
//!
//! A collection never fails as a whole and never drops anything in silence: a region that could not be read is a
//! [`Scope`] that failed, with what was asked and why it was refused. Such a region is *unknown*, never *empty*, and a
//! reader must not conclude that a machine is gone because an inventory with failed scopes lacks it.

pub mod aws;
mod instance;
#[cfg(test)]
pub(crate) mod sample;

use std::fmt;

pub use instance::{AttachedVolume, Instance, InstanceState, Lifecycle, PublicIpv4, RootDevice, Tenancy};

/// Everything that one collection saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// All instances of the scopes that are complete, ordered by resource key.
    pub instances: Vec<Instance>,
    /// What was asked for, and how it went, ordered by region.
    pub scopes: Vec<Scope>,
}

impl Inventory {
    /// True if nothing that was asked for failed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.scopes.iter().all(|scope| matches!(scope.outcome, ScopeOutcome::Complete { .. }))
    }
}

/// One part of a collection that succeeds or fails by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Who was asked.
    pub provider: Provider,
    /// None if the account could not be learnt.
    pub account: Option<String>,
    /// None if the collection failed before any region was asked.
    pub region: Option<String>,
    /// How it went.
    pub outcome: ScopeOutcome,
}

/// A cloud provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// Amazon Web Services.
    Aws,
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aws => "aws",
        })
    }
}

/// How a scope went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeOutcome {
    /// All pages were read.
    Complete {
        /// So many instances, in any state.
        instances: usize,
    },
    /// Nothing is known of it.
    Failed {
        /// The call that failed: `ec2:DescribeInstances`.
        what: String,
        /// Why.
        why: Failure,
    },
}

/// Why a provider could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Failure {
    /// What a reader can do about it depends on this.
    pub kind: FailureKind,
    /// In the provider's words.
    pub message: String,
}

/// The classes of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    /// The credentials are good but lack the permission, or the region is not enabled.
    Denied,
    /// Too many calls, even after retries.
    Throttled,
    /// No answer in time.
    TimedOut,
    /// No credentials, or credentials that the provider does not accept.
    Credentials,
    /// No connection.
    Unreachable,
    /// An answer that breaks the provider's own contract.
    Malformed,
    /// The provider failed, or refused for another reason.
    Provider,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "denied",
            Self::Throttled => "throttled",
            Self::TimedOut => "timed out",
            Self::Credentials => "credentials",
            Self::Unreachable => "unreachable",
            Self::Malformed => "malformed answer",
            Self::Provider => "provider error",
        })
    }
}

/// Told how a collection gets on.
pub trait Progress: Send + Sync {
    /// So many regions will be read.
    fn regions(&self, total: usize);
    /// One more page of a region was read, which held so many instances.
    fn page(&self, region: &str, instances: usize);
    /// A region is done.
    fn region_done(&self, region: &str, outcome: &ScopeOutcome);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn regions(&self, _total: usize) {}
    fn page(&self, _region: &str, _instances: usize) {}
    fn region_done(&self, _region: &str, _outcome: &ScopeOutcome) {}
}
