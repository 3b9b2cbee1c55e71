//! Refuses a machine that is not any more what it was when the plan was made: in another state, started again, or of another type. That it is the same machine
//! its number says, which Google gives once.

use jiff::Timestamp;
use model::machine::ComputeEngineFacts;

use super::untold;
use crate::Refusal;

pub(super) fn state(was: &str, facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    let is = facts.state.as_deref().ok_or_else(|| untold("its state"))?;
    if is == was { Ok(()) } else { Err(Refusal::StateChanged { was: was.to_owned(), is: is.to_owned() }) }
}

pub(super) fn started_at(was: Timestamp, facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    let is = facts.started_at.ok_or_else(|| untold("when it was started"))?;
    if is == was { Ok(()) } else { Err(Refusal::StartedAgain { was, is }) }
}

pub(super) fn machine_type(was: &str, facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    let is = facts.machine_type.as_deref().ok_or_else(|| untold("its type"))?;
    if is == was { Ok(()) } else { Err(Refusal::TypeChanged { was: was.to_owned(), is: is.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{
        holds,
        sample::{STARTED, facts},
    };
    use jiff::SignedDuration;
    use model::plan::Condition;

    #[test]
    fn what_is_not_known_is_not_the_same() {
        let nothing = facts(|facts| {
            (facts.state, facts.started_at, facts.machine_type) = (None, None, None);
        });
        assert_eq!(state("running", &nothing), Err(untold("its state")));
        assert_eq!(started_at(STARTED, &nothing), Err(untold("when it was started")));
        assert_eq!(machine_type("n2-standard-8", &nothing), Err(untold("its type")));
    }

    #[test]
    fn the_same_passes_and_nothing_else_does() {
        let of = |condition: Condition| holds(&condition, &facts(|_| ()));
        assert_eq!(of(Condition::StateIs { state: "running".to_owned() }), Ok(()));
        let [was, is] = ["stopped", "running"].map(str::to_owned);
        assert_eq!(of(Condition::StateIs { state: was.clone() }), Err(Refusal::StateChanged { was, is }));
        assert_eq!(of(Condition::LaunchedAtIs { at: STARTED }), Ok(()));
        for seconds in [-1, 1] {
            let was = STARTED + SignedDuration::from_secs(seconds);
            assert_eq!(of(Condition::LaunchedAtIs { at: was }), Err(Refusal::StartedAgain { was, is: STARTED }));
        }
        let [was, is] = ["n2-standard-4", "n2-standard-8"].map(str::to_owned);
        assert_eq!(of(Condition::InstanceTypeIs { instance_type: is.clone() }), Ok(()));
        assert_eq!(of(Condition::InstanceTypeIs { instance_type: was.clone() }), Err(Refusal::TypeChanged { was, is }));
    }
}
