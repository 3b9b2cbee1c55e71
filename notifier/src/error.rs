//! How one attempt to send ended. Each failure says whether trying again can help.

use std::time::Duration;

/// Proof that a server took the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// What a later message answers to stand in the same thread. Slack: `CHANNEL/TS`, none if its answer names the message in another form.
    /// Email: the `Message-ID`.
    pub reference: Option<String>,
    /// It stands in the thread of what it answers. False if it answers nothing, or the server takes no reply there.
    pub in_thread: bool,
    /// The server's own words, for logs and support.
    pub said: String,
}

/// Why one attempt did not end with a [`Receipt`]. The texts are for operators: they name what
/// failed and what to change, and never contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Another attempt may succeed: time-outs, refused connections, rate limits, 4xx replies of
    /// SMTP, 5xx of HTTP, and answers that are not understood.
    #[error("{why}")]
    Retry {
        /// The server's own wish for the earliest next attempt (`Retry-After`), if it told one.
        after: Option<Duration>,
        /// What happened.
        why: String,
    },
    /// No attempt with this configuration can succeed; `why` says what to change.
    #[error("{why}")]
    Permanent {
        /// What happened, and the remedy.
        why: String,
    },
    /// This channel takes no message of ours; another one may take this one.
    #[error("{why}")]
    NoChannel {
        /// What happened, and the remedy.
        why: String,
    },
    /// A refusal that is not known here. Another channel may take the message; where there is none it is tried again, because what is new may pass.
    #[error("{why}")]
    Unclear {
        /// What happened.
        why: String,
    },
    /// This message will never be taken: too long, malformed, or against the server's policy. Another one may be.
    #[error("{why}")]
    Unfit {
        /// What happened, and the remedy.
        why: String,
    },
}

impl SendError {
    /// A failure that time may heal, when the server named no waiting time.
    pub(crate) fn retry(why: impl Into<String>) -> Self {
        Self::Retry { after: None, why: why.into() }
    }
}
