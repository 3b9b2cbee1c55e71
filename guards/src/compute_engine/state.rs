//! Refuses a machine that does not run, and one of which Google does not say whether it does.

use model::machine::ComputeEngineFacts;

use super::untold;
use crate::Refusal;

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    match facts.state.as_deref() {
        None => Err(untold("its state")),
        Some("running") => Ok(()),
        Some(state) => Err(Refusal::NotRunning { state: state.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{may_stop_compute_engine, sample::facts};

    #[test]
    fn only_a_running_machine_passes() {
        let of = |state: Option<&str>| may_stop_compute_engine(&facts(|facts| facts.state = state.map(str::to_owned)));
        assert_eq!(of(Some("running")), Ok(()));
        assert_eq!(of(None), Err(untold("its state")));
        for state in ["pending", "stopping", "stopped", "suspended", "REPAIRING", "PENDING_STOP", "RUNNING", ""] {
            assert_eq!(of(Some(state)), Err(Refusal::NotRunning { state: state.to_owned() }));
        }
    }
}
