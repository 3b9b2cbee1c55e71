//! Refuses a machine that is not any more what it was when the plan was made: in another state, started again, or of another type.

use jiff::Timestamp;
use model::machine::Ec2Facts;

use crate::{Refusal, refusal::missing};

pub(crate) fn state(was: &str, facts: &Ec2Facts) -> Result<(), Refusal> {
    let is = facts.state.as_deref().ok_or_else(|| missing("state"))?;
    if is == was { Ok(()) } else { Err(Refusal::StateChanged { was: was.to_owned(), is: is.to_owned() }) }
}

pub(crate) fn launched_at(was: Timestamp, facts: &Ec2Facts) -> Result<(), Refusal> {
    let is = facts.launched_at.ok_or_else(|| missing("launch time"))?;
    if is == was { Ok(()) } else { Err(Refusal::StartedAgain { was, is }) }
}

pub(crate) fn instance_type(was: &str, facts: &Ec2Facts) -> Result<(), Refusal> {
    let is = facts.instance_type.as_deref().ok_or_else(|| missing("instance type"))?;
    if is == was { Ok(()) } else { Err(Refusal::TypeChanged { was: was.to_owned(), is: is.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{LAUNCHED, facts};
    use jiff::SignedDuration;

    #[test]
    fn what_is_not_known_is_not_the_same() {
        let nothing = facts(|facts| {
            (facts.0.state, facts.0.launched_at, facts.0.instance_type) = (None, None, None);
        });
        assert_eq!(state("running", &nothing), Err(missing("state")));
        assert_eq!(launched_at(LAUNCHED, &nothing), Err(missing("launch time")));
        assert_eq!(instance_type("m5.large", &nothing), Err(missing("instance type")));
    }

    #[test]
    fn the_same_passes_and_nothing_else_does() {
        let facts = facts(|_| ());
        assert_eq!(state("running", &facts), Ok(()));
        let [was, is] = ["stopped", "running"].map(str::to_owned);
        assert_eq!(state("stopped", &facts), Err(Refusal::StateChanged { was, is }));
        assert_eq!(launched_at(LAUNCHED, &facts), Ok(()));
        for seconds in [-1, 1] {
            let was = LAUNCHED + SignedDuration::from_secs(seconds);
            assert_eq!(launched_at(was, &facts), Err(Refusal::StartedAgain { was, is: LAUNCHED }));
        }
        assert_eq!(instance_type("m5.large", &facts), Ok(()));
        let [was, is] = ["m5.xlarge", "m5.large"].map(str::to_owned);
        assert_eq!(instance_type("m5.xlarge", &facts), Err(Refusal::TypeChanged { was, is }));
    }
}
