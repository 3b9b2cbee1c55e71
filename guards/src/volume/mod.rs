//! What stands between a plan and a volume: a file per guard, as of machines. That a snapshot of it is whole is another guard's (`act/snapshot`).

mod attached;
mod outpost;
mod same;
#[cfg(test)]
pub(crate) mod sample;

use jiff::Timestamp;
use model::{plan::Condition, volume::VolumeFacts};

use crate::{Refusal, exemption, managed, unused};

/// One question about a volume.
type Guard = fn(&VolumeFacts) -> Result<(), Refusal>;

/// The most fundamental first.
const DELETE: [Guard; 4] = [exempt, attached::guard, is_managed, outpost::guard];

fn exempt(facts: &VolumeFacts) -> Result<(), Refusal> {
    exemption::of_tags(facts.tags.as_ref())
}

fn is_managed(facts: &VolumeFacts) -> Result<(), Refusal> {
    managed::of_tags(facts.tags.as_ref())
}

/// Whether a volume may be deleted, by what its provider says of it.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn may_delete(facts: &VolumeFacts) -> Result<(), Refusal> {
    DELETE.iter().try_for_each(|guard| guard(facts))
}

/// Whether a condition of a plan holds, by what the provider says of the volume now, and by since when every list has shown it unused.
pub(crate) fn holds(
    condition: &Condition,
    facts: &VolumeFacts,
    unused_since: Option<Timestamp>,
) -> Result<(), Refusal> {
    match condition {
        Condition::TagsPermit => exempt(facts).and_then(|()| is_managed(facts)),
        Condition::TiedToNothing => attached::guard(facts),
        Condition::UnusedSince { at } => unused::since(*at, unused_since),
        Condition::VolumeIs { volume_type, size_gib, created_at } => {
            same::volume((volume_type, *size_gib, *created_at), facts)
        }
        // Another guard's, which is asked last of all.
        Condition::SnapshotCompleted => Ok(()),
        Condition::StateIs { .. }
        | Condition::LaunchedAtIs { .. }
        | Condition::InstanceTypeIs { .. }
        | Condition::NotProtected
        | Condition::NoInstanceStoreWrites
        | Condition::StillIdle
        | Condition::AddressIs { .. }
        | Condition::NoReverseName
        | Condition::NotOffered
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
    fn a_volume_that_nothing_speaks_for_keeping_may_be_deleted() {
        assert_eq!(may_delete(&facts(|_| ())), Ok(()));
    }

    #[test]
    fn what_is_exempt_or_managed_stays_and_so_does_what_may_be() {
        let tagged = |key: &str| facts(|facts| drop(facts.tags.get_or_insert_default().insert(key.into(), "x".into())));
        let exempt = Err(Refusal::Exempt { tag: EXEMPTION_TAG.to_owned() });
        let tag = "CSIVolumeName".to_owned();
        let kept = Err(Refusal::ManagedElsewhere { tag: tag.clone() });
        assert_eq!(may_delete(&tagged(EXEMPTION_TAG)), exempt);
        assert_eq!(may_delete(&tagged(&tag)), kept);
        assert_eq!(may_delete(&facts(|facts| facts.tags = None)), Err(Refusal::TagsUnreadable));
        assert_eq!(holds(&Condition::TagsPermit, &tagged(EXEMPTION_TAG), None), exempt);
        assert_eq!(holds(&Condition::TagsPermit, &tagged(&tag), None), kept);
        assert_eq!(holds(&Condition::TagsPermit, &facts(|_| ()), None), Ok(()));
    }

    #[test]
    fn a_condition_on_something_else_never_holds_of_a_volume() {
        for condition in [
            Condition::StateIs { state: "available".to_owned() },
            Condition::LaunchedAtIs { at: Timestamp::UNIX_EPOCH },
            Condition::InstanceTypeIs { instance_type: "m5.large".to_owned() },
            Condition::NotProtected,
            Condition::NoInstanceStoreWrites,
            Condition::StillIdle,
            Condition::AddressIs { address: "203.0.113.8".to_owned() },
            Condition::NoReverseName,
            Condition::NotOffered,
        ] {
            let since = Some(Timestamp::UNIX_EPOCH);
            assert_eq!(holds(&condition, &facts(|_| ()), since), Err(Refusal::OfAnotherKind), "{condition:?}");
        }
    }

    #[test]
    fn what_was_used_since_it_was_found_stays() {
        let at = Timestamp::UNIX_EPOCH;
        let of = |shown| holds(&Condition::UnusedSince { at }, &facts(|_| ()), shown);
        assert_eq!((of(Some(at)), of(None)), (Ok(()), Err(Refusal::UsedInBetween { since: at })));
    }
}
