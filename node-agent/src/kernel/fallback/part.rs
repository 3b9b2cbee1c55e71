//! A part beside `/proc` that works, or the reason why it does not.

use crate::coverage::Status;

/// One of them, or why there is none.
#[derive(Debug)]
pub(super) enum Part<T> {
    Works(T),
    Refused(Status, String),
}

impl<T> Part<T> {
    pub(super) fn new<E>(
        wanted: bool,
        start: impl FnOnce() -> Result<T, E>,
        words: impl Fn(&E) -> (Status, String),
    ) -> Self {
        if !wanted {
            return Self::Refused(Status::Unsupported, "switched off by configuration".to_owned());
        }
        start().map_or_else(
            |error| {
                let (status, reason) = words(&error);
                Self::Refused(status, reason)
            },
            Self::Works,
        )
    }

    pub(super) fn works(&self) -> Option<&T> {
        match self {
            Self::Works(part) => Some(part),
            Self::Refused(..) => None,
        }
    }

    pub(super) fn absence(&self) -> Option<(Status, &str)> {
        match self {
            Self::Works(_) => None,
            Self::Refused(status, reason) => Some((*status, reason)),
        }
    }
}
