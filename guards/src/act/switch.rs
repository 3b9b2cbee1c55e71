//! Refuses while the kill switch is on. One that cannot be read is on.

use serde::Serialize;

use super::Moment;
use crate::Refusal;

/// The kill switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// Nothing is carried out.
    On,
    /// It is off.
    Off,
    /// It could not be read.
    Unreadable,
}

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    match moment.switch {
        Switch::Off => Ok(()),
        Switch::On => Err(Refusal::SwitchedOff),
        Switch::Unreadable => Err(Refusal::SwitchUnreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn a_switch_that_is_on_or_cannot_be_read_stops_everything() {
        assert_eq!(Sample::with(|moment| moment.switch = Switch::On), Err(Refusal::SwitchedOff));
        assert_eq!(Sample::with(|moment| moment.switch = Switch::Unreadable), Err(Refusal::SwitchUnreadable));
    }
}
