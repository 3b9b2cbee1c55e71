//! A quiet instance, judged by its provider's metrics, and those in words.
//!
//! A quiet instance: if and only if the provider says that the instance is running, no agent reports from it, and the provider measured
//! it over a look-back of at least [`QuietPolicy::after_s`], in at least nine of ten periods, CPU and network both, and no
//! period was above [`QuietPolicy::cpu_millionths`] or [`QuietPolicy::network_bytes_per_s`].
//!
//! Pure. It is weak evidence: a machine that waits for something, serves rarely or works in memory of a GPU looks the same. So it
//! raises a finding and never an action: no rule is asked for a proposal. An instance that an agent reports from is judged by that
//! alone, and is an idle instance or none.

use super::{Class, Detection, Detector, Inputs, SnapshotPart};
use crate::{
    inventory::{Usage, UsageSource},
    verdict::{
        Judgement,
        words::{bytes, span},
    },
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(super) const DETECTOR: Detector = Detector {
    class: Class::QuietInstance,
    version: 1,
    rests_on: &[SnapshotPart::Inventory, SnapshotPart::ProviderMetrics],
    detect,
};

fn detect(inputs: &Inputs, judgement: &Judgement) -> Detection {
    if !judgement.is_blind() {
        return Detection::Refuted { because: "an agent reports from it: its own word counts from now on".to_owned() };
    }
    // Whether a machine runs, its provider alone can say here.
    let case = inputs.metrics.as_ref().filter(|_| inputs.presence.listed.is_some());
    match case.map(|case| (case.judge(), case)) {
        Some((Quietness::Quiet, QuietCase { seen, .. })) => {
            Detection::Confirmed { since: seen.from, until: seen.until, work: None }
        }
        Some((Quietness::Busy, case)) => {
            Detection::Refuted { because: format!("busy: {}", case.thresholds()[..2].join(", ")) }
        }
        Some((Quietness::NotKnown, _)) | None => Detection::NotKnown,
    }
}

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

/// What the metrics come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quietness {
    /// Quiet over the whole look-back.
    Quiet,
    /// Some period was above a threshold.
    Busy,
    /// Too little was measured to say so of the whole look-back.
    NotKnown,
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
    /// Judges. One busy period is enough to be busy, however few there are; to be quiet takes nearly all.
    #[must_use]
    pub fn judge(&self) -> Quietness {
        let Self { seen, policy } = self;
        let (cpu, network) = (seen.busiest_cpu_millionths, seen.busiest_network_bytes_per_s);
        if cpu.is_some_and(|cpu| cpu > policy.cpu_millionths)
            || network.is_some_and(|network| network > policy.network_bytes_per_s)
        {
            return Quietness::Busy;
        }
        let long_enough = seen.seconds() >= policy.after_s;
        let enough = u64::from(seen.periods).saturating_mul(10) >= seen.expected().saturating_mul(9);
        if cpu.is_some() && network.is_some() && long_enough && enough && seen.periods > 0 {
            Quietness::Quiet
        } else {
            Quietness::NotKnown
        }
    }

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

    fn seconds(&self) -> u64 {
        u64::try_from(self.until.as_second().saturating_sub(self.from.as_second())).unwrap_or(0)
    }

    fn expected(&self) -> u64 {
        self.seconds() / u64::from(self.period_s.max(1))
    }
}

/// Millionths as per cent, rounded up to a tenth so that nothing looks quieter than it was.
fn percent(millionths: u32) -> String {
    let tenths = millionths.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use proptest::prelude::*;

    fn seen() -> Seen {
        let from = Timestamp::from_second(1_789_999_200).unwrap_or_default();
        Seen {
            source: UsageSource::CloudWatch,
            from,
            until: from + SignedDuration::from_hours(24 * 14),
            period_s: 3_600,
            periods: 336,
            busiest_cpu_millionths: Some(11_901),
            busiest_network_bytes_per_s: Some(3_072),
        }
    }

    fn case(seen: Seen) -> QuietCase {
        let policy = QuietPolicy { after_s: 7 * 86_400, cpu_millionths: 20_000, network_bytes_per_s: 5_000 };
        QuietCase { seen, policy }
    }

    #[test]
    fn quiet_is_quiet_in_all_it_says_and_in_nearly_every_period() {
        let of = |change: fn(&mut QuietCase)| {
            let mut case = case(seen());
            change(&mut case);
            case.judge()
        };
        assert_eq!(of(|_| {}), Quietness::Quiet);
        assert_eq!(of(|case| case.seen.periods = 303), Quietness::Quiet);
        assert_eq!(of(|case| case.seen.periods = 302), Quietness::NotKnown, "less than nine of ten");
        assert_eq!(of(|case| case.seen.busiest_network_bytes_per_s = None), Quietness::NotKnown);
        assert_eq!(of(|case| case.seen.busiest_cpu_millionths = None), Quietness::NotKnown);
        assert_eq!(of(|case| case.policy.after_s = 15 * 86_400), Quietness::NotKnown, "the look-back is too short");
        assert_eq!(of(|case| case.seen.until = case.seen.from), Quietness::NotKnown);
    }

    #[test]
    fn one_busy_period_is_enough_however_few_there_are() {
        let busy = Seen { busiest_cpu_millionths: Some(20_001), periods: 1, ..seen() };
        assert_eq!(case(busy).judge(), Quietness::Busy);
        let busy = Seen { busiest_network_bytes_per_s: Some(5_001), busiest_cpu_millionths: None, ..seen() };
        assert_eq!(case(busy).judge(), Quietness::Busy);
    }

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

    proptest! {
        #[test]
        fn a_kept_case_is_judged_alike_and_more_work_is_never_quieter(
            periods in 0_u32..400, cpu in prop::option::of(0_u32..50_000), network in prop::option::of(0_u64..10_000),
        ) {
            let seen = Seen { periods, busiest_cpu_millionths: cpu, busiest_network_bytes_per_s: network, ..seen() };
            let case = case(seen);
            let kept: QuietCase = serde_json::from_str(&serde_json::to_string(&case).unwrap_or_default()).expect("JSON");
            prop_assert_eq!(kept.judge(), case.judge());
            if case.judge() == Quietness::Quiet {
                prop_assert!(cpu.is_some_and(|cpu| cpu <= 20_000) && network.is_some_and(|n| n <= 5_000) && periods >= 303);
            }
        }
    }
}
