//! What people say by buttons and forms. Plain data.

use jiff::Timestamp;
use slack_morphism::prelude::SlackTriggerId;

use super::delay::Delay;

/// What a person says of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Do it.
    Approve,
    /// Do not.
    Deny,
    /// What it is about is left alone for so long.
    NotNow(Delay),
    /// It is left alone until then.
    Until(Timestamp),
    /// It is left alone for good.
    Never {
        /// Why.
        because: String,
    },
    /// They want to be asked more, in a form.
    Asks(Form, Trigger),
}

/// Which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Until when something is left alone.
    Until,
    /// Why it is left alone for good.
    Never,
}

/// By which a form is opened, within three seconds, for whoever pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger(pub(super) SlackTriggerId);
