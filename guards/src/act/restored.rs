//! Refuses where the database was restored from a backup since the plan was approved: what was done or undone in between is not in it.

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    if moment.was_restored == Some(false) { Ok(()) } else { Err(Refusal::Restored) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn a_yes_from_before_a_restore_is_none() {
        for was_restored in [Some(true), None] {
            assert_eq!(Sample::with(|moment| moment.was_restored = was_restored), Err(Refusal::Restored));
        }
    }
}
