//! Refuses a machine in an on-demand capacity reservation: that is billed whether or not a machine runs in it, and a place in it may be gone afterwards.

use model::machine::Ec2Facts;

use crate::Refusal;

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    match &facts.capacity_reservation {
        Some(id) => Err(Refusal::CapacityReserved { id: id.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn a_reserved_place_is_kept() {
        let id = "cr-1".to_owned();
        let reserved = guard(&facts(|facts| facts.0.capacity_reservation = Some(id.clone())));
        assert_eq!(reserved, Err(Refusal::CapacityReserved { id }));
        assert_eq!(guard(&facts(|_| ())), Ok(()));
    }
}
