//! Refuses a volume that is not any more what it was when the plan was made: somebody has changed it since.

use jiff::Timestamp;
use model::volume::VolumeFacts;

use crate::{Refusal, refusal::missing};

pub(super) fn volume(was: (&str, u32, Timestamp), facts: &VolumeFacts) -> Result<(), Refusal> {
    let volume_type = facts.volume_type.as_deref().ok_or_else(|| missing("type"))?;
    let size_gib = facts.size_gib.ok_or_else(|| missing("size"))?;
    let created_at = facts.created_at.ok_or_else(|| missing("creation time"))?;
    let is = (volume_type, size_gib, created_at);
    let words = |(of, size, at): (&str, u32, Timestamp)| format!("{size} GiB {of} of {at}");
    if is == was { Ok(()) } else { Err(Refusal::VolumeChanged { was: words(was), is: words(is) }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{
        holds,
        sample::{CREATED, facts},
    };
    use model::plan::Condition;

    #[test]
    fn the_same_passes_and_nothing_else_does() {
        let of = |change: fn(&mut VolumeFacts)| {
            let condition = Condition::VolumeIs { volume_type: "gp3".to_owned(), size_gib: 100, created_at: CREATED };
            holds(&condition, &facts(change), None)
        };
        assert_eq!(of(|_| ()), Ok(()));
        assert_eq!(of(|facts| facts.volume_type = None), Err(missing("type")));
        assert_eq!(of(|facts| facts.size_gib = None), Err(missing("size")));
        assert_eq!(of(|facts| facts.created_at = None), Err(missing("creation time")));
        for change in [
            (|facts: &mut VolumeFacts| facts.volume_type = Some("io2".to_owned())) as fn(&mut VolumeFacts),
            |facts| facts.size_gib = Some(101),
            |facts| facts.created_at = Some(Timestamp::UNIX_EPOCH),
        ] {
            assert!(matches!(of(change), Err(Refusal::VolumeChanged { .. })), "{:?}", of(change));
        }
    }
}
