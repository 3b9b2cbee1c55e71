//! Refuses what a list has shown used since it was found.

use jiff::Timestamp;

use crate::Refusal;

/// `shown`: since when every list has shown it unused; none if the last one does not, or nobody knows.
pub(crate) fn since(since: Timestamp, shown: Option<Timestamp>) -> Result<(), Refusal> {
    if shown.is_some_and(|shown| shown <= since) { Ok(()) } else { Err(Refusal::UsedInBetween { since }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn what_was_used_since_it_was_found_is_not_left_over() {
        let at = Timestamp::constant(1_790_000_000, 0);
        assert_eq!(since(at, Some(at)), Ok(()));
        assert_eq!(since(at, Some(at - SignedDuration::from_hours(1))), Ok(()));
        for shown in [None, Some(at + SignedDuration::from_millis(1))] {
            assert_eq!(since(at, shown), Err(Refusal::UsedInBetween { since: at }));
        }
    }
}
