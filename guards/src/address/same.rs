//! Refuses an address that is not any more what it was when the plan was made.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{holds, may_release, sample::facts};
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
}
