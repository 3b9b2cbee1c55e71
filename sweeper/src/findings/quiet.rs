//! A provider's outside view of a machine, in words.

use crate::{
    inventory::Usage,
    verdict::words::{bytes, span},
};

/// How busy a provider saw a machine: `CloudWatch: no hour above 1.2 % CPU and 3.0 KiB/s network in 14 d (weak evidence)`.
#[must_use]
pub fn in_words(usage: &Usage) -> String {
    let ms = usage.until.duration_since(usage.from).as_millis();
    let lookback = span(i64::try_from(ms).unwrap_or(i64::MAX));
    let period = match usage.period_s {
        3_600 => "hour".to_owned(),
        seconds => format!("{} long period", span(i64::from(seconds).saturating_mul(1_000))),
    };
    let cpu = usage.busiest_cpu_millionths.map(|cpu| format!("{} CPU", percent(cpu)));
    let network = usage.busiest_network_bytes_per_s.map(|rate| format!("{}/s network", bytes(rate)));
    let not_told = match (&cpu, &network) {
        (Some(_), None) => ", network not measured",
        (None, Some(_)) => ", CPU not measured",
        _ => "",
    };
    let above = [cpu, network].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let expected = ms / i128::from(usage.period_s.max(1)) / 1_000;
    let gaps = if i128::from(usage.periods) < expected {
        format!(", measured in {} of {expected} {period}s", usage.periods)
    } else {
        String::new()
    };
    format!("{}: no {period} above {above} in {lookback}{not_told}{gaps} (weak evidence)", usage.source.name())
}

/// Millionths as per cent, rounded up to a tenth so that nothing looks quieter than it was.
fn percent(millionths: u32) -> String {
    let tenths = millionths.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Kind, Provider, ResourceId, Scope, UsageSource};
    use jiff::{SignedDuration, Timestamp};

    fn usage() -> Usage {
        let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
        let from = Timestamp::from_second(1_789_999_200).unwrap_or_default();
        Usage {
            id: ResourceId::new(&scope, Kind::Instance, "i-1"),
            source: UsageSource::CloudWatch,
            from,
            until: from + SignedDuration::from_hours(24 * 14),
            period_s: 3_600,
            periods: 336,
            busiest_cpu_millionths: Some(11_901),
            busiest_network_bytes_per_s: Some(3_072),
        }
    }

    #[test]
    fn what_is_said_is_never_less_than_what_was_measured() {
        assert_eq!(
            in_words(&usage()),
            "CloudWatch: no hour above 1.2 % CPU and 3.0 KiB/s network in 14 d (weak evidence)"
        );
        assert_eq!((percent(0), percent(1), percent(1_000_000)), ("0.0 %".into(), "0.1 %".into(), "100.0 %".into()));
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let half = Usage { busiest_network_bytes_per_s: None, periods: 300, ..usage() };
        assert_eq!(
            in_words(&half),
            "CloudWatch: no hour above 1.2 % CPU in 14 d, network not measured, measured in 300 of 336 hours \
             (weak evidence)"
        );
    }
}
