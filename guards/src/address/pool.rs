//! Refuses an address of the customer's own range, which AWS does not bill, one that can be used in a single zone alone, and one of which EC2 does not say whose it is.

use model::address::AddressFacts;

use crate::{Refusal, refusal::missing};

/// The pool of Amazon's own addresses.
const AMAZON: &str = "amazon";

pub(super) fn guard(facts: &AddressFacts) -> Result<(), Refusal> {
    if let Some(group) = &facts.border_group {
        return Err(Refusal::OfAnotherPool { pool: group.clone() });
    }
    match facts.pool.as_deref() {
        Some(AMAZON) => Ok(()),
        Some(pool) => Err(Refusal::OfAnotherPool { pool: pool.to_owned() }),
        None => Err(missing("pool of addresses")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{may_release, sample::facts};

    #[test]
    fn what_the_customer_brought_is_not_given_away() {
        let of = |pool: Option<&str>| may_release(&facts(|facts| facts.pool = pool.map(str::to_owned)));
        for pool in ["ipv4pool-ec2-0123456789abcdef0", "Amazon", ""] {
            assert_eq!(of(Some(pool)), Err(Refusal::OfAnotherPool { pool: pool.to_owned() }));
        }
        assert_eq!(of(None), Err(missing("pool of addresses")));
        let local = may_release(&facts(|facts| facts.border_group = Some("us-west-2-lax-1".to_owned())));
        assert_eq!(local, Err(Refusal::OfAnotherPool { pool: "us-west-2-lax-1".to_owned() }));
    }
}
