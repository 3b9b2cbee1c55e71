//! Refuses to end a machine of a group while another plan ends another one there, or just has: what was read of the group may be of before, and made smaller twice at once it may be out of balance
//! or below its minimum, so that machines end that work.

use super::OnMember;
use crate::{MemberRefusal, Refusal};

pub(crate) fn guard(on: &OnMember<'_>) -> Result<(), Refusal> {
    match on.ending {
        Some(other) => Err(MemberRefusal::EndingAnother { other: other.id.clone() }.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Ended;

    #[test]
    fn one_machine_of_a_group_is_ended_at_a_time() {
        let other = "aws:123456789012:eu-central-1:i-00000000000000002".parse().expect("a key");
        let refused = Ended::with(|ended| ended.ending = Some(other));
        assert_eq!(refused, Err(MemberRefusal::EndingAnother { other: "i-00000000000000002".to_owned() }.into()));
        assert_eq!(Ended::with(|_| ()), Ok(()));
    }
}
