//! Refuses a machine that is protected from being deleted, and one of which that is not known. Google would stop it all the same; whoever protected it wants it
//! kept, and a protection is never switched off.

use model::machine::ComputeEngineFacts;

use super::untold;
use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match facts.deletion_protection {
        Some(false) => Ok(()),
        Some(true) => Err(Refusal::Protected { by: "deletion protection".to_owned() }),
        None => Err(untold("whether it is protected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{holds, may_stop_compute_engine, sample::facts};
    use model::plan::Condition;

    #[test]
    fn only_a_machine_that_is_known_to_be_unprotected_passes() {
        let of = |is_on: Option<bool>| {
            let facts = facts(|facts| facts.deletion_protection = is_on);
            assert_eq!(may_stop_compute_engine(&facts), holds(&Condition::NotProtected, &facts));
            guard(&facts)
        };
        assert_eq!(of(Some(true)), Err(Refusal::Protected { by: "deletion protection".to_owned() }));
        assert_eq!(of(None), Err(untold("whether it is protected")));
        assert_eq!(of(Some(false)), Ok(()));
    }
}
