//! Refuses a machine that was bought otherwise than on demand: of a Spot instance only a persistent request survives a stop, and EC2 does not say which
//! kind it is; a capacity block is paid for already.

use model::machine::{Ec2Facts, Lifecycle};

use crate::Refusal;

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    match &facts.lifecycle {
        Lifecycle::OnDemand => Ok(()),
        Lifecycle::Spot => Err(Refusal::Spot),
        Lifecycle::CapacityBlock => Err(Refusal::CapacityBlock),
        Lifecycle::Other(lifecycle) => Err(Refusal::LifecycleNotKnown { lifecycle: lifecycle.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn only_a_machine_on_demand_passes() {
        let of = |lifecycle: Lifecycle| guard(&facts(|facts| facts.0.lifecycle = lifecycle));
        assert_eq!(of(Lifecycle::OnDemand), Ok(()));
        assert_eq!(of(Lifecycle::Spot), Err(Refusal::Spot));
        assert_eq!(of(Lifecycle::CapacityBlock), Err(Refusal::CapacityBlock));
        let lifecycle = "borrowed".to_owned();
        assert_eq!(of(Lifecycle::Other(lifecycle.clone())), Err(Refusal::LifecycleNotKnown { lifecycle }));
    }
}
