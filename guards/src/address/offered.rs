//! Refuses an address that has been offered to another account: it is about to be somebody else's. What could not be read counts as offered.

use model::address::{AddressFacts, Told};

use crate::Refusal;

pub(super) fn guard(facts: &AddressFacts) -> Result<(), Refusal> {
    match &facts.offered_to {
        Told::Nothing => Ok(()),
        Told::Something { what } => Err(Refusal::Offered { to: what.clone() }),
        Told::Unknown { why } => Err(Refusal::NotTold {
            what: "whether it has been offered to another account".to_owned(),
            why: why.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{may_release_now, sample::facts};

    #[test]
    fn what_is_on_its_way_to_somebody_else_stays() {
        let offered = facts(|facts| facts.offered_to = Told::Something { what: "999988887777".to_owned() });
        assert_eq!(may_release_now(&offered), Err(Refusal::Offered { to: "999988887777".to_owned() }));
        let why = "denied".to_owned();
        let unread = facts(|facts| facts.offered_to = Told::Unknown { why: why.clone() });
        let what = "whether it has been offered to another account".to_owned();
        assert_eq!(may_release_now(&unread), Err(Refusal::NotTold { what, why }));
    }
}
