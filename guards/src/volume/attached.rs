//! Refuses a volume that is attached to something, that is not ready, or that a service keeps for itself; and one of which EC2 does not say so.

use model::{address::Told, volume::VolumeFacts};

use crate::{Refusal, refusal::missing};

/// EC2's word for a volume that is whole, and attached to nothing.
const READY: &str = "available";

pub(super) fn guard(facts: &VolumeFacts) -> Result<(), Refusal> {
    if let Some(by) = &facts.service {
        return Err(Refusal::KeptByService { by: by.clone() });
    }
    match &facts.attached_to {
        Told::Nothing => {}
        Told::Something { what } => return Err(Refusal::TiedTo { what: what.clone() }),
        Told::Unknown { why } => {
            return Err(Refusal::NotTold { what: "what it is attached to".to_owned(), why: why.clone() });
        }
    }
    match facts.state.as_deref() {
        Some(READY) => Ok(()),
        Some(state) => Err(Refusal::NotReady { state: state.to_owned() }),
        None => Err(missing("state")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{holds, may_delete, sample::facts};
    use model::plan::Condition;

    #[test]
    fn what_is_used_stays() {
        let attached = facts(|facts| facts.attached_to = Told::Something { what: "i-1".to_owned() });
        let refused = Err(Refusal::TiedTo { what: "i-1".to_owned() });
        assert_eq!(may_delete(&attached), refused);
        assert_eq!(holds(&Condition::TiedToNothing, &attached, None), refused);
        let kept = facts(|facts| facts.service = Some("eks".to_owned()));
        assert_eq!(may_delete(&kept), Err(Refusal::KeptByService { by: "eks".to_owned() }));
        let why = "EC2 did not say".to_owned();
        let unread = facts(|facts| facts.attached_to = Told::Unknown { why: why.clone() });
        let what = "what it is attached to".to_owned();
        assert_eq!(may_delete(&unread), Err(Refusal::NotTold { what, why }));
    }

    #[test]
    fn only_what_is_ready_passes() {
        let of = |state: Option<&str>| may_delete(&facts(|facts| facts.state = state.map(str::to_owned)));
        for state in ["in-use", "creating", "deleting", "error", ""] {
            assert_eq!(of(Some(state)), Err(Refusal::NotReady { state: state.to_owned() }));
        }
        assert_eq!(of(None), Err(missing("state")));
    }
}
