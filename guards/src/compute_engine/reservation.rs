//! Refuses a machine that consumes one certain reservation: that is billed whether or not a machine runs in it, and a place in it may be gone afterwards.

use model::machine::ComputeEngineFacts;

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match &facts.reservation {
        Some(id) => Err(Refusal::CapacityReserved { id: id.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_compute_engine, sample::facts};

    #[test]
    fn a_reserved_place_is_kept() {
        let id = "nightly".to_owned();
        let reserved = facts(|facts| facts.reservation = Some(id.clone()));
        assert_eq!(may_stop_compute_engine(&reserved), Err(Refusal::CapacityReserved { id }));
    }
}
