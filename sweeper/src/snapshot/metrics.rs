//! What a provider measured of a machine, what that is held against, and both in words.

use crate::{
    inventory::{Usage, UsageSource},
    verdict::words::{bytes, span},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What counts as quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietPolicy {
    /// The look-back must be at least so long, in seconds.
    pub after_s: u64,
    /// The busiest period may have so much, in millionths of what the machine has.
    pub cpu_millionths: u32,
    /// Likewise of both directions together.
    pub network_bytes_per_s: u64,
}

/// How busy a provider saw a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Who measured.
    pub source: UsageSource,
    /// The first moment that was asked for.
    pub from: Timestamp,
    /// The last one.
    pub until: Timestamp,
    /// Length of each period in seconds.
    pub period_s: u32,
    /// So many were measured.
    pub periods: u32,
    /// See [`Usage::busiest_cpu_millionths`].
    pub busiest_cpu_millionths: Option<u32>,
    /// See [`Usage::busiest_network_bytes_per_s`].
    pub busiest_network_bytes_per_s: Option<u64>,
}

/// Everything that a judgement by provider metrics depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietCase {
    /// What was seen.
    pub seen: Seen,
    /// What it is held against.
    pub policy: QuietPolicy,
}

impl From<&Usage> for Seen {
    fn from(usage: &Usage) -> Self {
        Self {
            source: usage.source,
            from: usage.from,
            until: usage.until,
            period_s: usage.period_s,
            periods: usage.periods,
            busiest_cpu_millionths: usage.busiest_cpu_millionths,
            busiest_network_bytes_per_s: usage.busiest_network_bytes_per_s,
        }
    }
}

impl QuietCase {
    /// What it was held against, a line each.
    #[must_use]
    pub fn thresholds(&self) -> Vec<String> {
        let Self { seen, policy } = self;
        let cpu = seen.busiest_cpu_millionths.map_or_else(|| "not measured".to_owned(), percent);
        let rate = |rate: u64| format!("{}/s", bytes(rate));
        let network = seen.busiest_network_bytes_per_s.map_or_else(|| "not measured".to_owned(), rate);
        vec![
            format!("CPU in the busiest period: {cpu} of the machine (threshold {})", percent(policy.cpu_millionths)),
            format!("network in the busiest period: {network} (threshold {})", rate(policy.network_bytes_per_s)),
            format!("periods measured: {} of {} (nine of ten are needed)", seen.periods, seen.expected()),
        ]
    }
}

impl Seen {
    /// What was measured, in words: `CloudWatch: no hour above 1.2 % CPU and 3.0 KiB/s network in 14 d (weak evidence)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let lookback = span(i64::try_from(self.seconds().saturating_mul(1_000)).unwrap_or(i64::MAX));
        let period = match self.period_s {
            3_600 => "hour".to_owned(),
            seconds => format!("{} long period", span(i64::from(seconds).saturating_mul(1_000))),
        };
        let cpu = self.busiest_cpu_millionths.map(|cpu| format!("{} CPU", percent(cpu)));
        let network = self.busiest_network_bytes_per_s.map(|rate| format!("{}/s network", bytes(rate)));
        let not_told = match (&cpu, &network) {
            (Some(_), None) => ", network not measured",
            (None, Some(_)) => ", CPU not measured",
            _ => "",
        };
        let above = [cpu, network].into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let expected = self.expected();
        let gaps = if u64::from(self.periods) < expected {
            format!(", measured in {} of {expected} {period}s", self.periods)
        } else {
            String::new()
        };
        format!("{}: no {period} above {above} in {lookback}{not_told}{gaps} (weak evidence)", self.source.name())
    }

    /// Length of the look-back in seconds.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        u64::try_from(self.until.as_second().saturating_sub(self.from.as_second())).unwrap_or(0)
    }

    /// How many periods that are.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.seconds() / u64::from(self.period_s.max(1))
    }
}

/// Millionths as per cent, rounded up to a tenth so that nothing looks quieter than it was.
fn percent(millionths: u32) -> String {
    let tenths = millionths.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Fourteen quiet days, for tests to change.
#[cfg(test)]
pub(crate) fn seen() -> Seen {
    let from = Timestamp::from_second(1_789_999_200).unwrap_or_default();
    Seen {
        source: UsageSource::CloudWatch,
        from,
        until: from + jiff::SignedDuration::from_hours(24 * 14),
        period_s: 3_600,
        periods: 336,
        busiest_cpu_millionths: Some(11_901),
        busiest_network_bytes_per_s: Some(3_072),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_never_less_than_what_was_measured() {
        let words = "CloudWatch: no hour above 1.2 % CPU and 3.0 KiB/s network in 14 d (weak evidence)";
        assert_eq!(seen().in_words(), words);
        assert_eq!((percent(0), percent(1), percent(1_000_000)), ("0.0 %".into(), "0.1 %".into(), "100.0 %".into()));
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let half = Seen { busiest_network_bytes_per_s: None, periods: 300, ..seen() };
        assert_eq!(
            half.in_words(),
            "CloudWatch: no hour above 1.2 % CPU in 14 d, network not measured, measured in 300 of 336 hours \
             (weak evidence)"
        );
    }
}
