//! Refuses a machine that was bought otherwise than by the second at the list price, and one that ends or is deleted at a time of its own: what Google takes
//! back at will may not come back with a start, and a time that runs begins anew.

use model::machine::{ComputeEngineFacts, Lifecycle};

use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match &facts.lifecycle {
        Lifecycle::OnDemand => {}
        Lifecycle::Spot => return Err(Refusal::Preemptible),
        Lifecycle::CapacityBlock => return Err(Refusal::CapacityBlock),
        Lifecycle::Other(lifecycle) => return Err(Refusal::LifecycleNotKnown { lifecycle: lifecycle.clone() }),
    }
    match &facts.ends_by {
        None => Ok(()),
        Some(what) => Err(Refusal::EndsByItself { what: what.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_compute_engine, sample::facts};

    #[test]
    fn only_a_machine_at_the_list_price_passes() {
        let of = |lifecycle: Lifecycle| may_stop_compute_engine(&facts(|facts| facts.lifecycle = lifecycle));
        assert_eq!(of(Lifecycle::OnDemand), Ok(()));
        assert_eq!(of(Lifecycle::Spot), Err(Refusal::Preemptible));
        assert_eq!(of(Lifecycle::CapacityBlock), Err(Refusal::CapacityBlock));
        let lifecycle = "FLEX_START".to_owned();
        assert_eq!(of(Lifecycle::Other(lifecycle.clone())), Err(Refusal::LifecycleNotKnown { lifecycle }));
    }

    #[test]
    fn what_ends_by_itself_is_left_alone() {
        let what = "its termination action is DELETE".to_owned();
        let ends = facts(|facts| facts.ends_by = Some(what.clone()));
        assert_eq!(may_stop_compute_engine(&ends), Err(Refusal::EndsByItself { what }));
    }
}
