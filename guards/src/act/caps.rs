//! Refuses more actions in an account within 24 hours than five, or five in a hundred of its machines, whichever is more: whatever else is wrong, that much
//! can be put right by hand. What nothing undoes nobody puts right, so of that five are all, however much there is. A deletion counts from when its snapshot is begun: that costs money, too.

use model::plan::ActionClass;
use serde::Serialize;

use super::Moment;
use crate::Refusal;

/// What was done in an account in the last 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Caps {
    /// So many actions, those under way among them, which begin with their snapshot where they have one.
    pub done: u32,
    /// So many machines run there, or did before.
    pub machines: u32,
}

impl Caps {
    /// So many actions are let through.
    const LEAST: u32 = 5;
    const PER_CENT: u32 = 5;

    fn most(self) -> u32 {
        (self.machines / (100 / Self::PER_CENT)).max(Self::LEAST)
    }
}

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    let most = match moment.plan.class() {
        ActionClass::Reversible => moment.caps.most(),
        ActionClass::Destructive => Caps::LEAST,
    };
    let done = moment.caps.done;
    if done < most { Ok(()) } else { Err(Refusal::Capped { done, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::{Released, Sample};

    #[test]
    fn a_day_has_an_end() {
        let of = |done, machines| Sample::with(|moment| moment.caps = Caps { done, machines });
        for (machines, most) in [(0, 5), (1, 5), (119, 5), (120, 6), (1_000, 50)] {
            assert_eq!(of(most - 1, machines), Ok(()), "{machines}");
            assert_eq!(of(most, machines), Err(Refusal::Capped { done: most, most }), "{machines}");
        }
    }

    #[test]
    fn of_what_nothing_undoes_five_are_all_however_much_there_is() {
        let of = |done| Released::with(|released| released.sample.caps = Caps { done, machines: 10_000 });
        assert_eq!(of(4), Ok(()));
        assert_eq!(of(5), Err(Refusal::Capped { done: 5, most: 5 }));
    }
}
