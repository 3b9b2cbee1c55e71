//! *Stop this idle instance.*
//!
//! Planned if and only if the verdict is idle and the machine is a running on-demand EC2 instance with an EBS root, or one of
//! Compute Engine at the list price, whose facts are all known, that carries no exemption and belongs to nothing larger. Everything else is a [`NoPlan`] that
//! names the one reason which decided, the most fundamental first. A member of an Auto Scaling group, a fleet or a
//! scheduler would be replaced at once: such a machine is its owner's to stop. Terminating is not this rule's business.

use jiff::Timestamp;
use model::{
    ResourceKey, Verdict,
    machine::Machine,
    plan::{Plan, PlanError},
};
use serde::{Deserialize, Serialize};

mod content;
mod no_plan;

pub use super::{Price, VALID_FOR};
pub use no_plan::NoPlan;

/// Everything that the rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopInput {
    /// The finding that the plan would end.
    pub finding: String,
    /// The number of the finding's record that the plan is made with; 0 in what earlier versions kept.
    #[serde(default)]
    pub record: u32,
    /// The machine.
    pub resource: ResourceKey,
    /// What the verdict engine found.
    pub verdict: Verdict,
    /// What the provider says of the machine.
    pub machine: Machine,
    /// What the machine costs.
    pub price: Price,
    /// What each public address costs that it gives back when it stops. None if nobody asked, as in what earlier versions kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent_ipv4: Option<Price>,
    /// The caller's clock; the plan may be approved for [`VALID_FOR`].
    pub now: Timestamp,
}

/// Plans to stop an idle machine, or says why not.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn plan(input: &StopInput) -> Result<Plan, NoPlan> {
    let stoppable = no_plan::unless_stoppable(input)?;
    let content = content::of(input, &stoppable);
    let valid_until = input.now.checked_add(VALID_FOR).map_err(|_out_of_range| NoPlan::ExpiryOutOfRange)?;
    Plan::seal(content, valid_until).map_err(|error: PlanError| NoPlan::CannotSeal { why: error.to_string() })
}
