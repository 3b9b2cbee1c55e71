//! Refuses an address from which a name leads back: whoever had one set sends mail with it, or is known by it. What could not be read counts as one.

use model::address::{AddressFacts, Told};

use crate::Refusal;

pub(super) fn guard(facts: &AddressFacts) -> Result<(), Refusal> {
    match &facts.reverse_name {
        Told::Nothing => Ok(()),
        Told::Something { what } => Err(Refusal::HasReverseName { name: what.clone() }),
        Told::Unknown { why } => {
            Err(Refusal::NotTold { what: "whether a name leads back from it".to_owned(), why: why.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{may_release, may_release_now, sample::facts};

    #[test]
    fn what_mail_is_sent_with_stays_and_so_does_what_may_be() {
        let named = facts(|facts| facts.reverse_name = Told::Something { what: "mx.example.com.".to_owned() });
        assert_eq!(may_release_now(&named), Err(Refusal::HasReverseName { name: "mx.example.com.".to_owned() }));
        let why = "denied".to_owned();
        let unread = facts(|facts| facts.reverse_name = Told::Unknown { why: why.clone() });
        let what = "whether a name leads back from it".to_owned();
        assert_eq!(may_release_now(&unread), Err(Refusal::NotTold { what, why }));
        assert_eq!(may_release(&unread), Ok(()), "a plan is made: it is asked before the call");
    }
}
