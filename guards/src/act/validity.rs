//! Refuses a plan whose time is over.

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    let at = moment.plan.valid_until();
    if moment.now < at { Ok(()) } else { Err(Refusal::PlanExpired { at }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;
    use jiff::SignedDuration;

    #[test]
    fn a_plan_ends_at_its_end() {
        let at = Sample::default().plan.valid_until();
        let with = |now| {
            Sample::with(|sample| {
                // All else is as fresh as before.
                let later = now - sample.now;
                sample.now = now;
                sample.live.as_mut().expect("a live sample").received_at += later;
            })
        };
        assert_eq!(with(at), Err(Refusal::PlanExpired { at }));
        assert_eq!(with(at - SignedDuration::from_nanos(1)), Ok(()));
    }
}
