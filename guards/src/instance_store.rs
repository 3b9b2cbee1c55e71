//! Refuses a machine with instance-store disks: what they hold does not outlive a stop. Where it is not known whether it has any, a plan says so among
//! what is lost.

use model::machine::{Ec2Facts, InstanceStore};

use crate::{Refusal, refusal::missing};

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    match facts.instance_store {
        InstanceStore::Absent | InstanceStore::Unknown => Ok(()),
        InstanceStore::Present => Err(Refusal::HasInstanceStore),
    }
}

/// The same where a plan demands that it is known: right before acting nobody guesses.
pub(crate) fn none(facts: &Ec2Facts) -> Result<(), Refusal> {
    match facts.instance_store {
        InstanceStore::Unknown => Err(missing("instance-store disks")),
        InstanceStore::Absent | InstanceStore::Present => guard(facts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn disks_that_do_not_outlive_a_stop_are_left_alone() {
        let of = |store: InstanceStore| guard(&facts(|facts| facts.0.instance_store = store));
        assert_eq!(of(InstanceStore::Absent), Ok(()));
        assert_eq!(of(InstanceStore::Unknown), Ok(()));
        assert_eq!(of(InstanceStore::Present), Err(Refusal::HasInstanceStore));
        let known = |store: InstanceStore| none(&facts(|facts| facts.0.instance_store = store));
        assert_eq!(known(InstanceStore::Absent), Ok(()));
        assert_eq!(known(InstanceStore::Present), Err(Refusal::HasInstanceStore));
        assert_eq!(known(InstanceStore::Unknown), Err(missing("instance-store disks")));
    }
}
