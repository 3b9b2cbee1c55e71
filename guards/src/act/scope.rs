//! Refuses where nobody has switched acting on: dry run is the default of each account and region.

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    if moment.is_switched_on { Ok(()) } else { Err(Refusal::DryRunOnly) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn an_account_is_left_alone_until_somebody_switches_it_on() {
        assert_eq!(Sample::with(|moment| moment.is_switched_on = false), Err(Refusal::DryRunOnly));
    }
}
