//! Refuses to undo what was not done, and to start what is not stopped any more.
//!
//! Starting a machine again stops nobody's work, so that the kill switch, the caps and the policy do not stand in its way: it is what mends a mistake.

use crate::{Refusal, refusal::missing};

/// In whose name an action is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// An enrolled person's.
    By(&'a str),
    /// Nobody's: work was reported that had begun before the machine was off, and what was done is noted as come undone for it.
    ForWork,
    /// Nobody's that is known.
    Unknown,
}

/// Everything that is known before an action is undone.
#[derive(Clone, Copy, Debug)]
pub struct Undoing<'a> {
    /// The machine's state in EC2's words, read for this; none if EC2 did not say.
    pub state: Option<&'a str>,
    /// Whether the action that is undone was carried out, as far as anybody knows: one whose end nobody waited for may have been.
    pub was_done: bool,
    /// In whose name.
    pub wanted: Wanted<'a>,
}

/// Whether an action may be undone at this moment.
///
/// # Errors
/// The one reason that decided.
pub fn may_undo(undoing: &Undoing<'_>) -> Result<(), Refusal> {
    if undoing.wanted == Wanted::Unknown {
        return Err(Refusal::NotApproved { given: 0, needs: 1 });
    }
    if !undoing.was_done {
        return Err(Refusal::NotDone);
    }
    match undoing.state {
        None => Err(missing("state")),
        Some("stopped") => Ok(()),
        Some(state) => Err(Refusal::NotStopped { state: state.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(state: Option<&str>, change: impl FnOnce(&mut Undoing<'_>)) -> Result<(), Refusal> {
        let mut undoing = Undoing { state, was_done: true, wanted: Wanted::By("ada") };
        change(&mut undoing);
        may_undo(&undoing)
    }

    #[test]
    fn what_was_stopped_is_started_again_because_somebody_says_so_or_works_on_it() {
        assert_eq!(with(Some("stopped"), |_| {}), Ok(()));
        assert_eq!(with(Some("stopped"), |undoing| undoing.wanted = Wanted::ForWork), Ok(()));
        let nobody = with(Some("stopped"), |undoing| undoing.wanted = Wanted::Unknown);
        assert_eq!(nobody, Err(Refusal::NotApproved { given: 0, needs: 1 }));
        assert_eq!(with(Some("stopped"), |undoing| undoing.was_done = false), Err(Refusal::NotDone));
    }

    #[test]
    fn what_is_not_stopped_is_left_alone() {
        assert_eq!(with(None, |_| {}), Err(missing("state")));
        for state in ["running", "pending", "stopping", "terminated", ""] {
            assert_eq!(with(Some(state), |_| {}), Err(Refusal::NotStopped { state: state.to_owned() }));
        }
    }
}
