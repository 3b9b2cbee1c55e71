//! Refuses a machine that others rest on: it forwards packets, or a route or a load balancer names it. What could not be read counts as such.
//!
//! Peers and traffic are no matter of this guard: the verdict that guard `live` asks for has them. Whoever exchanges data at one of its ports, one that the
//! kernel itself holds too, makes the machine *waiting*, and what its interfaces move for nobody's process, at whichever address, makes it *active*.

use serde::Serialize;
use std::collections::BTreeSet;

use super::{Moment, OnMachine};
use crate::Refusal;

/// What else rests on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependents {
    /// These, in words.
    Known(BTreeSet<String>),
    /// Not all of it could be read.
    Unreadable {
        /// The call and what it was refused with.
        why: String,
    },
}

pub(crate) fn guard(_: &Moment<'_>, machine: &OnMachine<'_>) -> Result<(), Refusal> {
    match machine.dependents {
        Dependents::Unreadable { why } => Err(Refusal::DependentsUnreadable { why: why.clone() }),
        Dependents::Known(what) => match what.first() {
            Some(what) => Err(Refusal::DependedUpon { what: what.clone() }),
            None => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn what_others_rest_on_is_left_alone() {
        let what = "a target of the load balancer web".to_owned();
        let known = Sample::with(|sample| sample.dependents = Dependents::Known(BTreeSet::from([what.clone()])));
        assert_eq!(known, Err(Refusal::DependedUpon { what }));
        let why = "ec2:DescribeRouteTables: UnauthorizedOperation".to_owned();
        let unread = Sample::with(|sample| sample.dependents = Dependents::Unreadable { why: why.clone() });
        assert_eq!(unread, Err(Refusal::DependentsUnreadable { why }));
    }
}
