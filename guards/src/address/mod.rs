//! What stands between a plan and a public address: a file per guard, as of machines.

mod offered;
mod pool;
mod reverse_name;
mod same;
#[cfg(test)]
pub(crate) mod sample;
mod tied;

use jiff::Timestamp;
use model::{address::AddressFacts, plan::Condition};

use crate::{Refusal, exemption, managed, unused};

/// One question about an address.
type Guard = fn(&AddressFacts) -> Result<(), Refusal>;

/// By what lists tell, the most fundamental first.
const RELEASE: [Guard; 5] = [exempt, tied::guard, is_managed, pool::guard, same::is_allocated];
/// By what has to be asked, right before the call.
const ASKED: [Guard; 2] = [reverse_name::guard, offered::guard];

fn exempt(facts: &AddressFacts) -> Result<(), Refusal> {
    exemption::of_tags(facts.tags.as_ref())
}

fn is_managed(facts: &AddressFacts) -> Result<(), Refusal> {
    managed::of_tags(facts.tags.as_ref())
}

/// Whether an address may be given back, by what its provider's list says of it.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn may_release(facts: &AddressFacts) -> Result<(), Refusal> {
    RELEASE.iter().try_for_each(|guard| guard(facts))
}

/// The same at the last moment, when it has been asked what lists do not tell.
pub(crate) fn may_release_now(facts: &AddressFacts) -> Result<(), Refusal> {
    may_release(facts)?;
    ASKED.iter().try_for_each(|guard| guard(facts))
}

/// Whether a condition of a plan holds, by what the provider says of the address now, and by since when every list has shown it unused.
pub(crate) fn holds(
    condition: &Condition,
    facts: &AddressFacts,
    unused_since: Option<Timestamp>,
) -> Result<(), Refusal> {
    match condition {
        Condition::TagsPermit => exempt(facts).and_then(|()| is_managed(facts)),
        Condition::AddressIs { address } => same::address(address, facts),
        Condition::TiedToNothing => tied::guard(facts),
        Condition::UnusedSince { at } => unused::since(*at, unused_since),
        Condition::NoReverseName => reverse_name::guard(facts),
        Condition::NotOffered => offered::guard(facts),
        Condition::StateIs { .. }
        | Condition::LaunchedAtIs { .. }
        | Condition::InstanceTypeIs { .. }
        | Condition::NotProtected
        | Condition::NoInstanceStoreWrites
        | Condition::StillIdle
        | Condition::VolumeIs { .. }
        | Condition::SnapshotCompleted
        | Condition::MemberOf { .. }
        | Condition::GroupCanShrink
        | Condition::JobPlaceIs { .. }
        | Condition::JobAttemptIs { .. }
        | Condition::NothingDependsOnIt
        | Condition::StillStuck { .. } => Err(Refusal::OfAnotherKind),
    }
}

#[cfg(test)]
mod tests {
    use super::{sample::facts, *};
    use crate::EXEMPTION_TAG;

    #[test]
    fn an_address_that_nothing_speaks_for_keeping_may_be_released() {
        assert_eq!(may_release(&facts(|_| ())), Ok(()));
        assert_eq!(may_release_now(&facts(|_| ())), Ok(()));
    }

    #[test]
    fn what_is_exempt_stays_and_so_does_what_may_be() {
        let exempt =
            facts(|facts| drop(facts.tags.get_or_insert_default().insert(EXEMPTION_TAG.into(), String::new())));
        assert_eq!(may_release(&exempt), Err(Refusal::Exempt { tag: EXEMPTION_TAG.to_owned() }));
        assert_eq!(may_release(&facts(|facts| facts.tags = None)), Err(Refusal::TagsUnreadable));
    }

    #[test]
    fn a_condition_on_a_machine_never_holds_of_an_address() {
        for condition in [
            Condition::StateIs { state: "running".to_owned() },
            Condition::LaunchedAtIs { at: Timestamp::UNIX_EPOCH },
            Condition::InstanceTypeIs { instance_type: "m5.large".to_owned() },
            Condition::NotProtected,
            Condition::NoInstanceStoreWrites,
            Condition::StillIdle,
            Condition::SnapshotCompleted,
        ] {
            let since = Some(Timestamp::UNIX_EPOCH);
            assert_eq!(holds(&condition, &facts(|_| ()), since), Err(Refusal::OfAnotherKind), "{condition:?}");
        }
    }

    #[test]
    fn tags_permit_it_if_none_exempts_it_and_none_says_who_manages_it() {
        let of = |key: &str| {
            let facts = facts(|facts| drop(facts.tags.get_or_insert_default().insert(key.to_owned(), "x".to_owned())));
            holds(&Condition::TagsPermit, &facts, None)
        };
        assert_eq!(of("team"), Ok(()));
        assert_eq!(of(EXEMPTION_TAG), Err(Refusal::Exempt { tag: EXEMPTION_TAG.to_owned() }));
        let tag = "aws:cloudformation:stack-name".to_owned();
        assert_eq!(of(&tag), Err(Refusal::ManagedElsewhere { tag }));
    }
}
