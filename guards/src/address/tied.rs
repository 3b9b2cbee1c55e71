//! Refuses an address that is tied to something, or that a service keeps for itself.

use model::address::AddressFacts;

use crate::Refusal;

pub(super) fn guard(facts: &AddressFacts) -> Result<(), Refusal> {
    if let Some(by) = &facts.service {
        return Err(Refusal::KeptByService { by: by.clone() });
    }
    match &facts.tied_to {
        Some(what) => Err(Refusal::TiedTo { what: what.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{holds, may_release, sample::facts};
    use model::plan::Condition;

    #[test]
    fn what_is_used_stays() {
        let used = facts(|facts| facts.tied_to = Some("eni-1".to_owned()));
        let refused = Err(Refusal::TiedTo { what: "eni-1".to_owned() });
        assert_eq!(may_release(&used), refused);
        assert_eq!(holds(&Condition::TiedToNothing, &used, None), refused);
        let kept = facts(|facts| facts.service = Some("alb".to_owned()));
        assert_eq!(may_release(&kept), Err(Refusal::KeptByService { by: "alb".to_owned() }));
    }
}
