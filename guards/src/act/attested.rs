//! Refuses a machine whose node has not proved which machine it is: whoever holds the fleet token could say that any machine is idle.

use super::{Moment, OnMachine};
use crate::Refusal;

pub(crate) fn guard(_: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    if machine.is_attested { Ok(()) } else { Err(Refusal::NotAttested) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn the_word_of_a_node_that_may_be_any_is_none() {
        assert_eq!(Sample::with(|moment| moment.is_attested = false), Err(Refusal::NotAttested));
    }
}
