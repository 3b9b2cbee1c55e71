//! Refuses a machine that does not run, and one of which EC2 does not say whether it does.

use model::machine::Ec2Facts;

use crate::{Refusal, refusal::missing};

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    match facts.state.as_deref() {
        None => Err(missing("state")),
        Some("running") => Ok(()),
        Some(state) => Err(Refusal::NotRunning { state: state.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn only_a_running_machine_passes() {
        let of = |state: Option<&str>| guard(&facts(|facts| facts.0.state = state.map(str::to_owned)));
        assert_eq!(of(Some("running")), Ok(()));
        assert_eq!(of(None), Err(missing("state")));
        for state in ["pending", "stopping", "stopped", "shutting-down", "terminated", "Running", ""] {
            assert_eq!(of(Some(state)), Err(Refusal::NotRunning { state: state.to_owned() }));
        }
    }
}
