//! Every reason to make no plan, in the order in which they decide.

use guards::Refusal;
use jiff::Timestamp;
use model::machine::{ComputeEngineFacts, Ec2Facts, Machine};
use serde::{Deserialize, Serialize};

use super::{StopInput, Verdict};

/// Why no plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "no_plan", rename_all = "snake_case")]
pub enum NoPlan {
    /// Only an idle machine is stopped.
    #[error("the verdict is not idle")]
    NotIdle {
        /// It is this.
        verdict: Verdict,
    },
    /// No provider's API stops it.
    #[error("the machine is on premises: no provider can be asked to stop it")]
    OnPrem,
    /// Its provider's machines are not stopped by this rule.
    #[error("no plan is made yet for machines of {provider}")]
    ProviderNotKnown {
        /// What it is called.
        provider: String,
    },
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

/// What the provider says of a machine that may be stopped.
#[derive(Clone, Copy)]
pub(super) enum Facts<'a> {
    Ec2(&'a Ec2Facts),
    ComputeEngine(&'a ComputeEngineFacts),
}

/// What a plan is made from once nothing speaks against it.
pub(super) struct Stoppable<'a> {
    pub(super) facts: Facts<'a>,
    pub(super) instance_type: &'a str,
    pub(super) launched_at: Timestamp,
}

pub(super) fn unless_stoppable(input: &StopInput) -> Result<Stoppable<'_>, NoPlan> {
    if input.verdict != Verdict::Idle {
        return Err(NoPlan::NotIdle { verdict: input.verdict });
    }
    let (facts, guarded) = match &input.machine {
        Machine::OnPrem => return Err(NoPlan::OnPrem),
        Machine::NotKnown(provider) => return Err(NoPlan::ProviderNotKnown { provider: provider.clone() }),
        Machine::Ec2(facts) => (Facts::Ec2(facts), guards::may_stop(facts)),
        Machine::ComputeEngine(facts) => (Facts::ComputeEngine(facts), guards::may_stop_compute_engine(facts)),
    };
    guarded.map_err(|by| NoPlan::Guarded { by })?;
    let (instance_type, launched_at) = match facts {
        Facts::Ec2(facts) => (&facts.instance_type, facts.launched_at),
        Facts::ComputeEngine(facts) => (&facts.machine_type, facts.started_at),
    };
    let missing = |fact: &str| NoPlan::Guarded {
        by: match facts {
            Facts::Ec2(_) => Refusal::FactUnknown { fact: fact.to_owned() },
            Facts::ComputeEngine(_) => {
                Refusal::NotTold { what: format!("its {fact}"), why: "Google does not say".to_owned() }
            }
        },
    };
    Ok(Stoppable {
        facts,
        instance_type: instance_type.as_deref().ok_or_else(|| missing("instance type"))?,
        launched_at: launched_at.ok_or_else(|| missing("launch time"))?,
    })
}
