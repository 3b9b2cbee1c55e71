//! Refuses to delete a volume of which no snapshot is whole that was begun for exactly this plan, once everybody had approved it.

use jiff::SignedDuration;

use super::{Answer, Moment, OnVolume};
use crate::Refusal;

/// The provider's clock and the database's may differ by so much.
const CLOCKS: SignedDuration = SignedDuration::from_secs(60);
/// EC2's word for a snapshot that is whole.
const WHOLE: &str = "completed";

pub(crate) fn guard(moment: &Moment<'_>, on: &OnVolume<'_>) -> Result<(), Refusal> {
    let snapshot = on.snapshot.ok_or(Refusal::NoSnapshot)?;
    let content = moment.plan.content();
    let is_its = snapshot.plan.as_deref() == Some(moment.plan.content_hash().as_str())
        && snapshot.volume_id.as_deref() == Some(content.resource.id.as_str())
        && snapshot.size_gib.is_some()
        && snapshot.size_gib == on.facts.size_gib;
    if !is_its {
        return Err(Refusal::SnapshotOfAnother);
    }
    if snapshot.state.as_deref() != Some(WHOLE) {
        return Err(Refusal::SnapshotNotWhole { state: snapshot.state.clone() });
    }
    let yes = moment.says.iter().filter(|say| say.answer == Answer::Approve).map(|say| say.at);
    let begun = snapshot.started_at;
    // What was written to the volume after that moment would be in no copy.
    let is_of_now = |approved: jiff::Timestamp| {
        begun.is_some_and(|begun| approved - CLOCKS <= begun && begun <= moment.now + CLOCKS)
    };
    if yes.max().is_some_and(is_of_now) { Ok(()) } else { Err(Refusal::SnapshotOfBefore) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::{Deleted, NOW};
    use model::volume::SnapshotFacts;

    fn with(change: impl FnOnce(&mut SnapshotFacts)) -> Result<(), Refusal> {
        Deleted::with(|deleted| change(deleted.snapshot.as_mut().expect("a snapshot")))
    }

    #[test]
    fn nothing_is_deleted_of_which_there_is_no_copy() {
        assert_eq!(Deleted::with(|deleted| deleted.snapshot = None), Err(Refusal::NoSnapshot));
        for state in [Some("pending"), Some("error"), Some("recoverable"), None] {
            let state = state.map(str::to_owned);
            let refused = with(|snapshot| snapshot.state = state.clone());
            assert_eq!(refused, Err(Refusal::SnapshotNotWhole { state }));
        }
    }

    #[test]
    fn the_copy_is_of_this_volume_and_for_this_plan() {
        let other = Err(Refusal::SnapshotOfAnother);
        assert_eq!(with(|snapshot| snapshot.plan = None), other);
        assert_eq!(with(|snapshot| snapshot.plan = Some("0".repeat(64))), other);
        assert_eq!(with(|snapshot| snapshot.volume_id = None), other);
        assert_eq!(with(|snapshot| snapshot.volume_id = Some("vol-1".to_owned())), other);
        assert_eq!(with(|snapshot| snapshot.size_gib = Some(99)), other);
        assert_eq!(with(|snapshot| snapshot.size_gib = None), other);
        let unknown = Deleted::with(|deleted| {
            deleted.facts.size_gib = None;
            deleted.snapshot.as_mut().expect("a snapshot").size_gib = None;
        });
        assert!(unknown.is_err(), "two sizes that nobody knows are not the same");
    }

    #[test]
    fn the_copy_was_begun_once_everybody_had_approved() {
        // The last yes is five minutes old.
        let of = |seconds: i64| with(|snapshot| snapshot.started_at = Some(NOW - SignedDuration::from_secs(seconds)));
        for seconds in [0, 299, 300, 360, -60] {
            assert_eq!(of(seconds), Ok(()), "{seconds}");
        }
        for seconds in [361, 3_600, -61] {
            assert_eq!(of(seconds), Err(Refusal::SnapshotOfBefore), "{seconds}");
        }
        assert_eq!(with(|snapshot| snapshot.started_at = None), Err(Refusal::SnapshotOfBefore));
        let late = Deleted::with(|deleted| deleted.sample.says[1].at = NOW);
        assert_eq!(late, Err(Refusal::SnapshotOfBefore), "the second yes came after it");
    }
}
