//! Why the object inside the kernel does not run, and errors in words.

use aya::maps::MapError;

/// Why the object does not run.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The process that loads it gives no answer.
    #[error("the process that loads the object fails: {0}")]
    Loader(#[source] std::io::Error),
    /// The kernel refuses it, or it was not built.
    #[error("{reason}")]
    Refused {
        /// What the kernel said, in words.
        reason: String,
        /// Whether the kernel could and only the agent may not.
        denied: bool,
    },
    /// A program cannot be attached again.
    #[error("program {name} does not attach again: {source}")]
    Attach {
        /// Its name in the object.
        name: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The object lacks a part: the build is broken.
    #[error("the embedded object has no {0}")]
    Incomplete(&'static str),
    /// A map cannot be read or written.
    #[error("a map of the object cannot be used: {0}")]
    Map(#[from] MapError),
    /// Entries of a map cannot be read or removed.
    #[error("a map of the object cannot be emptied: {0}")]
    Entries(#[source] std::io::Error),
    /// The thread that listens for events does not start.
    #[error("the thread for events does not start: {0}")]
    Watcher(#[source] std::io::Error),
    /// The iterator cannot be opened or read.
    #[error("the task iterator cannot be read: {0}")]
    Read(#[source] std::io::Error),
}

impl ObjectError {
    /// Whether the kernel could and only the agent may not.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { denied: true, .. })
    }
}

/// An error and its causes, each said once.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}
