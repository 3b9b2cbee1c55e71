//! Refuses a machine that the sweeper itself needs: its own, and those of its database and proxies.

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    if moment.is_own == Some(false) { Ok(()) } else { Err(Refusal::Own) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn nobody_saws_off_the_branch_that_they_sit_on() {
        for is_own in [Some(true), None] {
            assert_eq!(Sample::with(|moment| moment.is_own = is_own), Err(Refusal::Own));
        }
    }
}
