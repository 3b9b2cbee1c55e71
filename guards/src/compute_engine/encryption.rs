//! Refuses a machine with a disk that is encrypted by a key which Google does not keep: nobody but who has the key starts it again, so that nothing here undoes
//! a stop.

use model::machine::ComputeEngineFacts;

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    if facts.needs_key { Err(Refusal::NeedsKey) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_compute_engine, sample::facts};

    #[test]
    fn what_cannot_be_started_again_is_not_stopped() {
        assert_eq!(may_stop_compute_engine(&facts(|facts| facts.needs_key = true)), Err(Refusal::NeedsKey));
    }
}
