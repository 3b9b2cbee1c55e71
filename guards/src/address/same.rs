//! Refuses an address that is not any more what it was when the plan was made, or was used in between.

use jiff::Timestamp;
use model::address::AddressFacts;

use crate::{Refusal, refusal::missing};

/// One without an allocation, from before networks were the customer's own, is nothing that an allocation's call gives back.
pub(super) fn is_allocated(facts: &AddressFacts) -> Result<(), Refusal> {
    if facts.allocation_id.is_some() { Ok(()) } else { Err(missing("allocation")) }
}

pub(super) fn address(was: &str, facts: &AddressFacts) -> Result<(), Refusal> {
    let is = facts.address.as_deref().ok_or_else(|| missing("address"))?;
    if is == was { Ok(()) } else { Err(Refusal::AddressChanged { was: was.to_owned(), is: is.to_owned() }) }
}

/// `shown`: since when every list has shown it unused; none if the last one does not, or nobody knows.
pub(super) fn unused_since(since: Timestamp, shown: Option<Timestamp>) -> Result<(), Refusal> {
    if shown.is_some_and(|shown| shown <= since) { Ok(()) } else { Err(Refusal::UsedInBetween { since }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{holds, may_release, sample::facts};
    use jiff::SignedDuration;
    use model::plan::Condition;

    #[test]
    fn only_what_has_an_allocation_is_given_back_by_it() {
        assert_eq!(may_release(&facts(|facts| facts.allocation_id = None)), Err(missing("allocation")));
    }

    #[test]
    fn the_same_passes_and_nothing_else_does() {
        let condition = Condition::AddressIs { address: "203.0.113.8".to_owned() };
        assert_eq!(holds(&condition, &facts(|_| ()), None), Ok(()));
        assert_eq!(holds(&condition, &facts(|facts| facts.address = None), None), Err(missing("address")));
        let [was, is] = ["203.0.113.8", "203.0.113.9"].map(str::to_owned);
        let other = facts(|facts| facts.address = Some(is.clone()));
        assert_eq!(holds(&condition, &other, None), Err(Refusal::AddressChanged { was, is }));
    }

    #[test]
    fn what_was_used_since_it_was_found_is_not_left_over() {
        let since = Timestamp::constant(1_790_000_000, 0);
        let of = |shown: Option<Timestamp>| holds(&Condition::UnusedSince { at: since }, &facts(|_| ()), shown);
        assert_eq!(of(Some(since)), Ok(()));
        assert_eq!(of(Some(since - SignedDuration::from_hours(1))), Ok(()));
        for shown in [None, Some(since + SignedDuration::from_millis(1))] {
            assert_eq!(of(shown), Err(Refusal::UsedInBetween { since }));
        }
    }
}
