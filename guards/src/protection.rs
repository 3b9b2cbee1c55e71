//! Refuses a machine that somebody has protected from being stopped or ended, and one of which that is not known. A protection is never switched off.

use model::machine::{Ec2Facts, Protection};

use crate::Refusal;

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    match &facts.protection {
        Protection::Off => Ok(()),
        Protection::On { by } => Err(Refusal::Protected { by: by.clone() }),
        Protection::Unknown => Err(Refusal::ProtectionUnreadable),
        Protection::NotYet => Err(Refusal::ProtectionNotYetKnown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn only_a_machine_that_is_known_to_be_unprotected_passes() {
        let of = |protection: Protection| guard(&facts(|facts| facts.0.protection = protection));
        let by = "stop protection".to_owned();
        assert_eq!(of(Protection::On { by: by.clone() }), Err(Refusal::Protected { by }));
        assert_eq!(of(Protection::Unknown), Err(Refusal::ProtectionUnreadable));
        assert_eq!(of(Protection::NotYet), Err(Refusal::ProtectionNotYetKnown));
        assert_eq!(of(Protection::Off), Ok(()));
    }
}
