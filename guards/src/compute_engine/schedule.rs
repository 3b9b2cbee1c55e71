//! Refuses a machine with a resource policy: it may be a schedule, which starts the machine again and stops it by itself. Which kind it is the machine does not
//! tell.

use model::machine::ComputeEngineFacts;

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match facts.resource_policies.first() {
        Some(policy) => Err(Refusal::HasResourcePolicy { policy: policy.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_compute_engine, sample::facts};

    #[test]
    fn a_machine_that_a_schedule_may_start_is_left_to_it() {
        let policy = "office-hours".to_owned();
        let scheduled = facts(|facts| facts.resource_policies.push(policy.clone()));
        assert_eq!(may_stop_compute_engine(&scheduled), Err(Refusal::HasResourcePolicy { policy }));
    }
}
