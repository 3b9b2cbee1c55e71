//! A call that failed, and what a repetition would have to change.

use crate::inventory::{Failure, FailureKind};

/// What has to change before the same call is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inventory) enum Remedy {
    /// Nothing that a program can do.
    None,
    /// Time: the server or the way to it failed.
    Again,
    /// Time, and fewer calls.
    Slower,
    /// Fresh credentials.
    NewCredentials,
    /// A list from its first page on, if the call had a page token.
    NewList,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::inventory) struct Refused {
    pub(in crate::inventory) why: Failure,
    pub(in crate::inventory) remedy: Remedy,
}

impl Refused {
    /// An answer that breaks the provider's own contract; it would be the same once more.
    pub(in crate::inventory) fn malformed(message: impl Into<String>) -> Self {
        Self { why: Failure { kind: FailureKind::Malformed, message: message.into() }, remedy: Remedy::None }
    }
}
