//! Where a message stands.

/// Channel and thread of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The channel, by its name or id; that of the configuration if there is none.
    pub channel: Option<&'a str>,
    /// What it answers, by its [`Receipt::reference`](crate::Receipt::reference): it stands in that thread, and so in that message's channel, whichever one is named above.
    pub answers: Option<&'a str>,
    /// The channel that it was meant for and that does not take it, which the message says.
    pub instead_of: Option<&'a str>,
}

impl Place<'_> {
    /// By itself, in the channel of the configuration.
    pub const DEFAULT: Self = Place { channel: None, answers: None, instead_of: None };

    /// The channel and the thread that it belongs in, as far as they are told.
    pub(super) fn channel_and_thread(&self) -> (Option<&str>, Option<&str>) {
        match self.answers.and_then(|reference| reference.split_once('/')) {
            Some((channel, ts)) => (Some(channel), Some(ts)),
            None => (self.channel, None),
        }
    }
}
