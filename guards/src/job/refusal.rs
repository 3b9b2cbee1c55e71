//! Every reason not to terminate a job that is not one not to touch a machine.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Why a job of AWS Batch is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum JobRefusal {
    /// Someone said never.
    #[error("its {of} is exempt by the tag `{tag}`")]
    Exempt {
        /// `job queue`, `compute environment`, `machine`.
        of: String,
        /// The tag's name.
        tag: String,
    },
    /// An unread tag may be an exemption.
    #[error("the tags of its {of} could not be read, and one of them may exempt it")]
    TagsUnreadable {
        /// As above.
        of: String,
    },
    /// Its end may be the end of more.
    #[error("it is {what}: plans terminate single jobs alone")]
    PartOfMore {
        /// In words.
        what: String,
    },
    /// There is nothing to terminate, or somebody does so already.
    #[error("its status is `{status}`, not `RUNNING`")]
    NotRunning {
        /// In Batch's words.
        status: String,
    },
    /// Somebody was faster.
    #[error("somebody has cancelled or terminated it already")]
    Ending,
    /// What it is may not be what was approved.
    #[error("{what} could not be read")]
    NotKnown {
        /// What of it.
        what: String,
    },
    /// It is elsewhere by now.
    #[error("its {what} was {was} when the plan was made, and is {is}")]
    PlaceChanged {
        /// `job queue`, `definition`, `compute environment`.
        what: String,
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// It has been started again: what it does is something else.
    #[error("its {what} was {was} when the plan was made, and is {is}")]
    AttemptChanged {
        /// `attempt`, `start`, `task`, `container instance`, `machine`.
        what: String,
        /// Then.
        was: String,
        /// Now.
        is: String,
    },
    /// It may have run in a time that nobody saw.
    #[error(
        "nothing of it had run since {was} when the plan was made, and since {is} now: in between is a time that nobody saw"
    )]
    BeganAnew {
        /// Then.
        was: Timestamp,
        /// Now.
        is: Timestamp,
    },
    /// That one would fail with it.
    #[error("{what} waits for its end, and would fail with it")]
    DependedUpon {
        /// In words.
        what: String,
    },
    /// That one may be lost with it.
    #[error("it has submitted {what}, which is not over and may need it")]
    HeadOf {
        /// In words.
        what: String,
    },
    /// It may tell of a time before.
    #[error(
        "its agent's answer came at {received_at} and speaks until {ended_at}, by the agent's clock: it is late, or that clock is wrong"
    )]
    NotOfNow {
        /// By the agent's clock.
        ended_at: Timestamp,
        /// By the database's clock.
        received_at: Timestamp,
    },
    /// That is the agents' doing, or of what all of them wait for.
    #[error(
        "{turned_stuck} jobs were found stuck there within 24 hours, and {running} run: so many at once look like a broken agent, or like something that all of them wait for"
    )]
    CohortTurnedStuck {
        /// So many.
        turned_stuck: u32,
        /// Of so many that run.
        running: u32,
    },
    /// Something has run.
    #[error("it is not stuck any more: {why}")]
    NotStuck {
        /// In words.
        why: String,
    },
}
