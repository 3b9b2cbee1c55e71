//! *Terminate this stuck job of AWS Batch.*
//!
//! Planned if and only if the verdict on the job's own processes is stuck, nothing leaves a doubt of that (something else that runs on its machine, a timer that will wake it, what its agent does not tell), and every guard of jobs lets it through: it runs, by Batch's word, in one task on a known machine of a known compute environment, is no part of an array or
//! a multi-node job, no other job waits for its end or was submitted by it and is not over, and nothing exempts it. Nothing undoes it, and Batch does not try it again. What it saves is not known: its machine is billed until Batch ends it, and whether it does so, or runs
//! other jobs on it, nobody knows before.

use guards::{JobRefusal, Refusal};
use jiff::Timestamp;
use model::{
    ResourceKey, Verdict,
    job::JobFacts,
    plan::{Action, Charge, Condition, Loss, Plan, PlanContent, PlanError, Saving},
};
use serde::{Deserialize, Serialize};

use super::{Price, VALID_FOR};

/// Everything that the rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminateInput {
    /// The finding that the plan would end.
    pub finding: String,
    /// The number of the finding's record that the plan is made with.
    pub record: u32,
    /// The job's key.
    pub resource: ResourceKey,
    /// What was found of its processes.
    pub verdict: Verdict,
    /// Why that is not certain enough to end it, in words; none if it is.
    pub doubt: Option<String>,
    /// Since when nothing of it has run, as the finding has it.
    pub since: Timestamp,
    /// What the lists say of it.
    pub job: JobFacts,
    /// What its machine costs, if the job has it for itself.
    pub price: Price,
    /// The caller's clock; the plan may be approved for [`VALID_FOR`].
    pub now: Timestamp,
}

/// Why no plan is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "no_plan", rename_all = "snake_case")]
pub enum NoPlan {
    /// It may work, or wait.
    #[error("the verdict on it is {}, not stuck", verdict.as_str())]
    NotStuck {
        /// What it is.
        verdict: Verdict,
    },
    /// It may be stuck, and that is not certain enough.
    #[error("that it is stuck is not certain enough to end it: {why}")]
    NotCertain {
        /// In words.
        why: String,
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

/// Plans to terminate a stuck job, or says why not.
///
/// # Errors
/// The one reason that decided, the most fundamental first.
pub fn plan(input: &TerminateInput) -> Result<Plan, NoPlan> {
    if input.verdict != Verdict::Stuck {
        return Err(NoPlan::NotStuck { verdict: input.verdict });
    }
    if let Some(why) = &input.doubt {
        return Err(NoPlan::NotCertain { why: why.clone() });
    }
    let guarded = |by| NoPlan::Guarded { by };
    guards::may_terminate(&input.job).map_err(guarded)?;
    let missing = |what: &str| guarded(JobRefusal::NotKnown { what: what.to_owned() }.into());
    let place = input.job.place.clone().ok_or_else(|| missing("its place"))?;
    let attempt = input.job.attempt.clone().ok_or_else(|| missing("its attempt"))?;
    let machine = attempt.machine.clone();
    let conditions = vec![
        Condition::TagsPermit,
        Condition::StateIs { state: "RUNNING".to_owned() },
        Condition::JobPlaceIs { place },
        Condition::JobAttemptIs { attempt },
        Condition::NothingDependsOnIt,
        Condition::StillStuck { since: input.since },
    ];
    let valid_until = input.now.checked_add(VALID_FOR).map_err(|_out_of_range| NoPlan::ExpiryOutOfRange)?;
    Plan::seal(content(input, conditions, machine), valid_until)
        .map_err(|error: PlanError| NoPlan::CannotSeal { why: error.to_string() })
}

fn content(input: &TerminateInput, conditions: Vec<Condition>, machine: String) -> PlanContent {
    let JobFacts { region, job_id: id, name, attempts_allowed, submitted_by, .. } = &input.job;
    let called = name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    let mut lost = vec![Loss::Job { id: id.clone(), submitted_by: submitted_by.clone() }];
    // Where Batch did not say how often it may be tried, one attempt is its default.
    lost.extend(attempts_allowed.filter(|allowed| *allowed > 1).map(|allowed| Loss::Retries { allowed }));
    PlanContent {
        finding: input.finding.clone(),
        record: input.record,
        resource: input.resource.clone(),
        title: format!(
            "Terminate the stuck AWS Batch job {id}{called} on {machine} in {region} for good; Batch does not try it again"
        ),
        conditions,
        actions: vec![Action::TerminateJob],
        reversal: Vec::new(),
        lost,
        keeps_billing: vec![Charge::MachineOfJob { id: machine }],
        net_saving: saving(&input.price),
    }
}

fn saving(price: &Price) -> Saving {
    let at = match price {
        Price::OnDemand(rate) => format!(" (at {rate})"),
        Price::Unknown(_) => String::new(),
    };
    Saving::Unknown {
        why: format!(
            "its machine is billed{at} until AWS Batch ends it, and whether it does so or runs other jobs there is not known before"
        ),
    }
}
