//! Refuses a machine with disks of its host: Google stops it only if what they hold is discarded, which is never asked for.

use model::machine::ComputeEngineFacts;

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    if facts.local_ssds == 0 { Ok(()) } else { Err(Refusal::HasLocalSsd) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{holds, may_stop_compute_engine, sample::facts};
    use model::plan::Condition;

    #[test]
    fn disks_that_do_not_outlive_a_stop_are_left_alone() {
        for local_ssds in [1, 8] {
            let facts = facts(|facts| facts.local_ssds = local_ssds);
            assert_eq!(may_stop_compute_engine(&facts), Err(Refusal::HasLocalSsd));
            assert_eq!(holds(&Condition::NoInstanceStoreWrites, &facts), Err(Refusal::HasLocalSsd));
        }
        assert_eq!(holds(&Condition::NoInstanceStoreWrites, &facts(|_| ())), Ok(()));
    }
}
