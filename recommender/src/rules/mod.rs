//! One file per rule: when it makes a plan or recommends something, when not and why; and what a rule looked at, so that its plan can be made again.

pub mod architecture;
pub mod batch;
pub mod delete;
pub mod end;
pub mod region;
pub mod release;
pub mod request;
pub mod rightsize;
pub mod schedule;
pub mod spot;
pub mod stop;
pub mod task;
pub mod terminate;

use jiff::SignedDuration;
use model::{HourlyRate, plan::Plan};
use serde::{Deserialize, Serialize};

/// How long a plan may be approved.
pub const VALID_FOR: SignedDuration = SignedDuration::from_hours(24);

/// What something costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// The list price, on demand.
    OnDemand(HourlyRate),
    /// Not known, and why.
    Unknown(String),
}

/// What one of the rules looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The rule `stop`.
    Stop(Box<stop::StopInput>),
    /// The rule `release`.
    Release(Box<release::ReleaseInput>),
    /// The rule `delete`.
    Delete(Box<delete::DeleteInput>),
    /// The rule `end`.
    End(Box<end::EndInput>),
    /// The rule `terminate`.
    Terminate(Box<terminate::TerminateInput>),
}

/// Why none of the rules makes a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// The rule `stop` does not, or the rule `end`.
    #[error(transparent)]
    Stop(#[from] stop::NoPlan),
    /// The rule `release` does not.
    #[error(transparent)]
    Release(#[from] release::NoPlan),
    /// The rule `delete` does not.
    #[error(transparent)]
    Delete(#[from] delete::NoPlan),
    /// The rule `terminate` does not.
    #[error(transparent)]
    Terminate(#[from] terminate::NoPlan),
}

impl Input {
    /// Makes the plan of whichever rule looked at it, or says why not.
    ///
    /// # Errors
    /// The one reason that decided.
    pub fn plan(&self) -> Result<Plan, NoPlan> {
        match self {
            Self::Stop(input) => Ok(stop::plan(input)?),
            Self::Release(input) => Ok(release::plan(input)?),
            Self::Delete(input) => Ok(delete::plan(input)?),
            Self::End(input) => Ok(end::plan(input)?),
            Self::Terminate(input) => Ok(terminate::plan(input)?),
        }
    }
}
