//! What a site may set: how much is to be left free, and what is worth a person's time.

use jiff::SignedDuration;
use model::Usd;
use serde::{Deserialize, Serialize};

/// The thresholds of all rules. Those that keep a recommendation from being made too early are not among them: see [`crate::demand`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// So many per cent of what the recommended type offers stay free above what was needed: of CPU above the 99th percentile, of all else above the peak.
    pub headroom_per_cent: u8,
    /// What saves less in a month is not recommended.
    pub least_saving: Usd,
    /// A single cost must be saved again within so many months.
    pub pays_back_in_months: u8,
    /// So many pools of spare capacity, each of a type and zone, must be cheap enough at the same time.
    pub least_spot_pools: u8,
    /// How long an interrupted run takes to go on elsewhere.
    #[serde(with = "minutes")]
    pub restart_takes: SignedDuration,
    /// A schedule must have held for so many weeks.
    pub schedule_weeks: u8,
    /// So many hours a machine is up before it is needed, and after.
    pub schedule_slack_hours: u8,
    /// A machine is not stopped for less than so many hours.
    pub schedule_least_hours: u8,
    /// A request of a job or task is lowered, or called too high, after so many of its runs.
    pub least_runs: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            headroom_per_cent: 20,
            least_saving: Usd::from_micros(5_000_000),
            pays_back_in_months: 3,
            least_spot_pools: 3,
            restart_takes: SignedDuration::from_mins(10),
            schedule_weeks: 4,
            schedule_slack_hours: 1,
            schedule_least_hours: 4,
            least_runs: 20,
        }
    }
}

impl Policy {
    /// What may be needed of so much: what is left of it without the headroom, rounded down.
    #[must_use]
    pub fn usable(&self, offered: u64) -> u64 {
        let part = 100 - u128::from(self.headroom_per_cent.min(100));
        u64::try_from(u128::from(offered) * part / 100).unwrap_or(u64::MAX)
    }
}

/// A duration as whole minutes.
mod minutes {
    use jiff::SignedDuration;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &SignedDuration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(duration.as_mins())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SignedDuration, D::Error> {
        u32::deserialize(from).map(|minutes| SignedDuration::from_mins(minutes.into()))
    }
}
