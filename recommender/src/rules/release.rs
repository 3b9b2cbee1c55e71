//! *Release this unused address.*
//!
//! Planned if and only if a finding says that an Elastic IP address has been tied to nothing, and every guard of addresses lets it through by what EC2's list says: it carries no exemption,
//! no service and no other tool keeps it, and it is out of Amazon's own pool. What lists do not tell (a name that leads back from it, an offer to another account) is asked right before
//! the call. Nothing undoes it, and the plan says so.

use guards::Refusal;
use jiff::Timestamp;
use model::{
    HourlyRate, ResourceKey,
    address::AddressFacts,
    plan::{Action, Condition, Loss, Plan, PlanContent, PlanError, Saving},
};
use serde::{Deserialize, Serialize};

use super::{Price, VALID_FOR};

/// Everything that the rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseInput {
    /// The finding that the plan would end.
    pub finding: String,
    /// The number of the finding's record that the plan is made with.
    pub record: u32,
    /// The address's key.
    pub resource: ResourceKey,
    /// Since when it has been unused, as the finding has it.
    pub since: Timestamp,
    /// What EC2's list says of it.
    pub address: AddressFacts,
    /// What it costs while it is tied to nothing.
    pub price: Price,
    /// The caller's clock; the plan may be approved for [`VALID_FOR`].
    pub now: Timestamp,
}

/// Why no plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "no_plan", rename_all = "snake_case")]
pub enum NoPlan {
    /// A guard stands before it.
    #[error("{by}")]
    Guarded {
        /// What that one says.
        #[serde(flatten)]
        by: Refusal,
    },
    /// The caller's clock is at the end of time.
    #[error("the time is too far in the future for an expiry")]
    ExpiryOutOfRange,
    /// The plan cannot be written down.
    #[error("the plan cannot be sealed: {why}")]
    CannotSeal {
        /// What went wrong.
        why: String,
    },
}

/// Plans to release an unused address, or says why not.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn plan(input: &ReleaseInput) -> Result<Plan, NoPlan> {
    let guarded = |by| NoPlan::Guarded { by };
    guards::may_release(&input.address).map_err(guarded)?;
    let missing = || guarded(Refusal::FactUnknown { fact: "address".to_owned() });
    let address = input.address.address.as_deref().ok_or_else(missing)?;
    let valid_until = input.now.checked_add(VALID_FOR).map_err(|_out_of_range| NoPlan::ExpiryOutOfRange)?;
    Plan::seal(content(input, address), valid_until)
        .map_err(|error: PlanError| NoPlan::CannotSeal { why: error.to_string() })
}

fn content(input: &ReleaseInput, address: &str) -> PlanContent {
    let called = input.address.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    let region = &input.address.region;
    PlanContent {
        finding: input.finding.clone(),
        record: input.record,
        resource: input.resource.clone(),
        title: format!("Release the unused Elastic IP address {address}{called} in {region}, for good"),
        conditions: vec![
            Condition::TagsPermit,
            Condition::AddressIs { address: address.to_owned() },
            Condition::TiedToNothing,
            Condition::UnusedSince { at: input.since },
            Condition::NoReverseName,
            Condition::NotOffered,
        ],
        actions: vec![Action::ReleaseAddress],
        reversal: Vec::new(),
        lost: vec![Loss::ElasticIpv4 { address: address.to_owned() }],
        keeps_billing: Vec::new(),
        net_saving: saving(&input.price),
    }
}

fn saving(price: &Price) -> Saving {
    let saved = |per_hour: HourlyRate| Saving::Known {
        per_hour,
        per_month: per_hour.per_month(),
        basis: "the list price of an address that is tied to nothing, over 730 hours a month".to_owned(),
    };
    match price {
        Price::OnDemand(rate) => saved(*rate),
        Price::Unknown(why) => Saving::Unknown { why: why.clone() },
    }
}
