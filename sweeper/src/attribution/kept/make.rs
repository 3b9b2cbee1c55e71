//! Who adds days up: one replica at a time, in the background.

use super::round::Round;
use crate::{
    attribution::Settings,
    store::{Store, StoreError},
};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Counts days of machines that were added up, and added up anew.
pub const MADE: &str = "cost_days_made_total";

/// A round ends after so long: then it is seen anew what there is to do, and another replica may have its turn.
const ROUND: Duration = Duration::from_secs(300);
/// Between rounds that find nothing more to do, at least and at most.
const EVERY: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(600)];
/// To see what there is to do takes as long as all machines' history and prices; so many times as long as that took it is not seen anew.
const PAUSE: u32 = 20;

/// What came of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// How many days of machines were added up.
    pub days: u64,
    /// Whether there is more to do.
    pub are_more_due: bool,
}

/// Adds days up until it is told to stop. `retention`: for how long rollups are kept, and what is added up of them with them.
pub async fn run(store: Store, settings: Settings, retention: Duration, stop: CancellationToken) {
    loop {
        let began = Instant::now();
        let round = async {
            match round(&store, &settings, retention, Pace::InTheBackground).await {
                Ok(made) => {
                    metrics::counter!(MADE).increment(made.days);
                    made.are_more_due
                }
                Err(error) => {
                    tracing::error!(error = %crate::chain(&error), "days of costs cannot be added up; they are tried again");
                    false
                }
            }
        };
        let are_more_due = tokio::select! {
            // Each part of a day is written in one transaction, so that a round may be left at any moment.
            () = stop.cancelled() => return,
            are_more_due = round => are_more_due,
        };
        let pause = if are_more_due { Duration::ZERO } else { (began.elapsed() * PAUSE).clamp(EVERY[0], EVERY[1]) };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Adds all days up that are due, as fast as it can, and says how many days of machines these were. None if another replica is at it.
///
/// # Errors
/// If the database does not answer; what was added up until then is kept.
pub async fn add_up_days(store: &Store, settings: &Settings, retention: Duration) -> Result<u64, StoreError> {
    let mut days = 0;
    loop {
        let made = round(store, settings, retention, Pace::AtOnce).await?;
        days += made.days;
        if !made.are_more_due {
            return Ok(days);
        }
    }
}

/// How fast days are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Half of the time.
    InTheBackground,
    /// All the time.
    AtOnce,
}

async fn round(store: &Store, settings: &Settings, retention: Duration, pace: Pace) -> Result<Made, StoreError> {
    let Some(turn) = store.turn_of_cost_days().await? else { return Ok(Made::default()) };
    let began = Instant::now();
    let mut made = Made::default();
    let mut round = Round::begin(store, settings, retention).await?;
    while let Some(of) = round.next().await? {
        let since = Instant::now();
        made.days += round.make(&of).await?;
        if began.elapsed() > ROUND {
            made.are_more_due = true;
            break;
        }
        if pace == Pace::InTheBackground {
            tokio::time::sleep(since.elapsed()).await;
        }
    }
    turn.end().await?;
    if made.days > 0 {
        tracing::info!(days = made.days, "added up what machines cost on days that are over");
    }
    Ok(made)
}
