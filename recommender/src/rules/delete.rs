//! *Delete this unattached volume, once there is a snapshot of it.*
//!
//! Planned if and only if a finding says that an EBS volume has been attached to nothing, and every guard of volumes lets it through: it is whole and ready, carries no exemption, no service and
//! no other tool keeps it, and it stands in a region of AWS's. What it saves is told at the least: its snapshot goes on to be billed, by blocks that nobody knows before it is made, so
//! that the most that these may come to is taken off. Nothing undoes it: a volume that is made of the snapshot is another one, and the plan says so.

use guards::Refusal;
use jiff::Timestamp;
use model::{
    HourlyRate, ResourceKey, Usd,
    plan::{Action, Charge, Condition, Loss, Plan, PlanContent, PlanError, Saving},
    volume::VolumeFacts,
};
use serde::{Deserialize, Serialize};

use super::{Price, VALID_FOR};

/// Everything that the rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteInput {
    /// The finding that the plan would end.
    pub finding: String,
    /// The number of the finding's record that the plan is made with.
    pub record: u32,
    /// The volume's key.
    pub resource: ResourceKey,
    /// Since when it has been unused, as the finding has it.
    pub since: Timestamp,
    /// What EC2's list says of it.
    pub volume: VolumeFacts,
    /// What it costs.
    pub price: Price,
    /// The most that a snapshot of it may cost.
    pub snapshot_at_most: Price,
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
    /// The snapshot may cost as much as the volume does.
    #[error("a snapshot of it may cost as much as it does")]
    SavesNothing,
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

/// Plans to delete an unattached volume, or says why not.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn plan(input: &DeleteInput) -> Result<Plan, NoPlan> {
    let guarded = |by| NoPlan::Guarded { by };
    guards::may_delete(&input.volume).map_err(guarded)?;
    let missing = |fact: &str| guarded(Refusal::FactUnknown { fact: fact.to_owned() });
    let facts = &input.volume;
    let volume_type = facts.volume_type.clone().ok_or_else(|| missing("type"))?;
    let size_gib = facts.size_gib.ok_or_else(|| missing("size"))?;
    let created_at = facts.created_at.ok_or_else(|| missing("creation time"))?;
    let is_as_it_is = Condition::VolumeIs { volume_type, size_gib, created_at };
    let valid_until = input.now.checked_add(VALID_FOR).map_err(|_out_of_range| NoPlan::ExpiryOutOfRange)?;
    Plan::seal(content(input, is_as_it_is, saving(input)?), valid_until)
        .map_err(|error: PlanError| NoPlan::CannotSeal { why: error.to_string() })
}

fn content(input: &DeleteInput, is_as_it_is: Condition, net_saving: Saving) -> PlanContent {
    let VolumeFacts { region, volume_id: id, name, size_gib, volume_type, .. } = &input.volume;
    let called = name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    let described =
        size_gib.zip(volume_type.as_deref()).map(|(size, of)| format!("{size} GiB {of} ")).unwrap_or_default();
    PlanContent {
        finding: input.finding.clone(),
        record: input.record,
        resource: input.resource.clone(),
        title: format!(
            "Take a snapshot of the unattached {described}volume {id}{called} in {region}, and delete the volume for good"
        ),
        conditions: vec![
            Condition::TagsPermit,
            Condition::TiedToNothing,
            is_as_it_is,
            Condition::UnusedSince { at: input.since },
            Condition::SnapshotCompleted,
        ],
        actions: vec![Action::DeleteVolume],
        reversal: Vec::new(),
        lost: vec![Loss::Volume { id: id.clone() }],
        keeps_billing: vec![Charge::SnapshotOf { volume: id.clone() }],
        net_saving,
    }
}

/// What is saved at the least.
fn saving(input: &DeleteInput) -> Result<Saving, NoPlan> {
    let (volume, snapshot) = match (&input.price, &input.snapshot_at_most) {
        (Price::OnDemand(volume), Price::OnDemand(snapshot)) => {
            (volume.per_hour().micros(), snapshot.per_hour().micros())
        }
        (Price::Unknown(why), _) | (_, Price::Unknown(why)) => return Ok(Saving::Unknown { why: why.clone() }),
    };
    let least = volume.saturating_sub(snapshot);
    if least <= 0 {
        return Err(NoPlan::SavesNothing);
    }
    let per_hour = HourlyRate::new(Usd::from_micros(least));
    Ok(Saving::Known {
        per_hour,
        per_month: per_hour.per_month(),
        basis: "at the least: the list price of the volume, less the most that its snapshot may come to, over 730 hours a month"
            .to_owned(),
    })
}
