//! Refuses a volume in the customer's own building: what it holds is not billed by its size, and its snapshots lie elsewhere.

use model::volume::VolumeFacts;

use crate::Refusal;

pub(super) fn guard(facts: &VolumeFacts) -> Result<(), Refusal> {
    if facts.on_outpost { Err(Refusal::OnOutpost) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{may_delete, sample::facts};

    #[test]
    fn what_stands_in_the_customers_building_stays() {
        assert_eq!(may_delete(&facts(|facts| facts.on_outpost = true)), Err(Refusal::OnOutpost));
    }
}
