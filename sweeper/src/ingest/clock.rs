//! Whether a sender's clock can be believed. Old heartbeats are welcome (a spool that empties after an outage); what claims to come from the
//! future is not, and neither is a sender whose present is not ours.

use crate::config::duration;
use heartbeat::envelope::Checked;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// A clock that is off by more than allowed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{what} is {off} {direction} this server's clock; {allowed} is allowed. Set the sender's clock (chrony or systemd-timesyncd)."
)]
pub(crate) struct Skewed {
    what: &'static str,
    off: String,
    direction: &'static str,
    allowed: String,
}

/// Compares the time of sending and every interval's end with `now`.
pub(super) fn check(now: Timestamp, allowed: Duration, envelope: &Checked) -> Result<(), Skewed> {
    let now_unix_ms = now.as_millisecond();
    let allowed_ms = i64::try_from(allowed.as_millis()).unwrap_or(i64::MAX);
    let skewed = |what, ahead_ms: i64| Skewed {
        what,
        off: rounded(ahead_ms.saturating_abs()),
        direction: if ahead_ms > 0 { "ahead of" } else { "behind" },
        allowed: duration::print(allowed),
    };
    let ahead_ms = envelope.sent_unix_ms.saturating_sub(now_unix_ms);
    if ahead_ms.saturating_abs() > allowed_ms {
        return Err(skewed("the time of sending", ahead_ms));
    }
    let ends = envelope.heartbeats.iter().filter_map(|heartbeat| Some(heartbeat.interval.as_ref()?.end_unix_ms));
    match ends.map(|end| end.saturating_sub(now_unix_ms)).max() {
        Some(ahead_ms) if ahead_ms > allowed_ms => Err(skewed("the end of an interval", ahead_ms)),
        _ => Ok(()),
    }
}

/// To the second, since nobody sets a clock by milliseconds.
fn rounded(ms: i64) -> String {
    let seconds = SignedDuration::from_secs(ms / 1_000);
    duration::print(seconds.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heartbeat::wire::{Heartbeat, Interval};

    const MINUTE_MS: i64 = 60_000;
    const NOW_MS: i64 = 1_800_000_000_000;

    fn judge(sent_offset_ms: i64, end_offset_ms: i64) -> Result<(), String> {
        let now = Timestamp::from_millisecond(NOW_MS).map_err(|error| error.to_string())?;
        let interval = Interval { end_unix_ms: NOW_MS + end_offset_ms, ..Interval::default() };
        let envelope = Checked {
            node_id: "host:0123456789abcdef0123456789abcdef".parse().map_err(|_| "node")?,
            boot_id: "6f1c1c1e-0000-4000-8000-000000000001".parse().map_err(|_| "boot")?,
            oldest_retained_sequence: 1,
            sent_unix_ms: NOW_MS + sent_offset_ms,
            heartbeats: vec![Heartbeat { interval: Some(interval), ..Heartbeat::default() }],
        };
        check(now, Duration::from_secs(300), &envelope).map_err(|skewed| skewed.to_string())
    }

    #[test]
    fn a_clock_within_the_allowance_and_an_old_backlog_pass() {
        assert_eq!(judge(0, -MINUTE_MS), Ok(()));
        assert_eq!(judge(5 * MINUTE_MS, 5 * MINUTE_MS), Ok(()));
        assert_eq!(judge(-5 * MINUTE_MS, 0), Ok(()));
        assert_eq!(judge(0, -7 * 24 * 60 * MINUTE_MS), Ok(()));
    }

    #[test]
    fn a_clock_that_is_off_either_way_and_a_future_interval_are_refused() {
        for (sent, end, words) in [
            (60 * MINUTE_MS, 0, "the time of sending is 1h ahead of this server's clock; 5m is allowed"),
            (-60 * MINUTE_MS, 0, "the time of sending is 1h behind this server's clock; 5m is allowed"),
            (0, 6 * MINUTE_MS, "the end of an interval is 6m ahead of this server's clock; 5m is allowed"),
            (i64::MAX - NOW_MS, 0, "the time of sending is "),
            (i64::MIN, 0, "the time of sending is "),
        ] {
            let answer = judge(sent, end);
            assert!(answer.as_ref().is_err_and(|text| text.starts_with(words)), "{answer:?}");
        }
    }
}
