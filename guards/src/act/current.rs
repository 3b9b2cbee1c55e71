//! Refuses a plan that its finding does not have any more, and one whose finding the last sweep did not confirm.

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    if moment.current_plan != Some(moment.plan.content_hash()) {
        return Err(Refusal::PlanWithdrawn);
    }
    if moment.confirmed_sweeps == 0 { Err(Refusal::NotConfirmed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn a_plan_goes_with_its_finding() {
        assert_eq!(Sample::with(|moment| moment.current_plan = None), Err(Refusal::PlanWithdrawn));
        let other = "0".repeat(64).try_into().expect("a hash");
        assert_eq!(Sample::with(|moment| moment.current_plan = Some(other)), Err(Refusal::PlanWithdrawn));
        assert_eq!(Sample::with(|moment| moment.confirmed_sweeps = 0), Err(Refusal::NotConfirmed));
        assert_eq!(Sample::with(|moment| moment.confirmed_sweeps = 1), Ok(()));
    }
}
