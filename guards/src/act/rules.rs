//! Refuses where the finding rests on a window that bridges a time without an agent, or where other rules tell work from housekeeping by now: rules that
//! take more for housekeeping would make a machine idle that nobody saw so.

use super::{Moment, OnMachine};
use crate::Refusal;

pub(crate) fn guard(_: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    if machine.bridges_a_gap {
        return Err(Refusal::BridgedGap);
    }
    match machine.live {
        // Whether there is one is another guard's.
        None => Ok(()),
        Some(live) if live.rules_version == machine.rules_version && !machine.rules_version.is_empty() => Ok(()),
        Some(_) => Err(Refusal::RulesChanged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn one_window_one_agent_one_set_of_rules() {
        assert_eq!(Sample::with(|sample| sample.bridges_a_gap = true), Err(Refusal::BridgedGap));
        let other = |version: &str| {
            Sample::with(|sample| sample.live.as_mut().expect("a live sample").rules_version = version.to_owned())
        };
        assert_eq!(other("builtin-8"), Err(Refusal::RulesChanged));
        assert_eq!(other(""), Err(Refusal::RulesChanged));
        let unnamed = Sample::with(|sample| {
            sample.live.as_mut().expect("a live sample").rules_version.clear();
            sample.rules_version = "";
        });
        assert_eq!(unnamed, Err(Refusal::RulesChanged), "rules that nobody names may be any");
    }
}
