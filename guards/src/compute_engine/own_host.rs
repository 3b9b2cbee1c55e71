//! Refuses a machine on a host of its own (a sole-tenant node): that is billed whether or not a machine runs on it.

use model::machine::ComputeEngineFacts;

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    if facts.is_on_own_host { Err(Refusal::OnOwnHost) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_compute_engine, sample::facts};

    #[test]
    fn a_host_that_is_paid_for_is_used() {
        assert_eq!(may_stop_compute_engine(&facts(|facts| facts.is_on_own_host = true)), Err(Refusal::OnOwnHost));
    }
}
