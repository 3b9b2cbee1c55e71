//! Refuses after a relapse: where a machine was started again, or an action undone, the next ones of that class in that account wait for a person.

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    if moment.has_relapsed { Err(Refusal::Relapsed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn one_mistake_is_enough() {
        assert_eq!(Sample::with(|moment| moment.has_relapsed = true), Err(Refusal::Relapsed));
    }
}
