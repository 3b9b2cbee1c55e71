//! Refuses a machine whose root is not known to be on EBS: one with an instance-store root cannot be stopped, only ended with all its data.

use model::machine::{Ec2Facts, Root};

use crate::{Refusal, refusal::missing};

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    match facts.root {
        Root::Ebs => Ok(()),
        Root::InstanceStore => Err(Refusal::InstanceStoreRoot),
        Root::Unknown => Err(missing("root device type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn only_a_root_that_outlives_a_stop_passes() {
        let of = |root: Root| guard(&facts(|facts| facts.0.root = root));
        assert_eq!(of(Root::Ebs), Ok(()));
        assert_eq!(of(Root::InstanceStore), Err(Refusal::InstanceStoreRoot));
        assert_eq!(of(Root::Unknown), Err(missing("root device type")));
    }
}
