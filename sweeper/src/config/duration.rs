//! Durations as people write them: `30s`, `10m`, `24h`, `7d`, `1h 30m`. A day has 24 hours; negative ones are refused.

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use std::time::Duration;

/// Parses a duration.
///
/// # Errors
/// One line that shows the text and examples of what is understood.
pub fn parse(text: &str) -> Result<Duration, String> {
    let refuse = || format!("`{text}` is not a duration; write it like \"30s\", \"10m\", \"24h\" or \"7d\"");
    let span: Span = text.trim().parse().map_err(|_| refuse())?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| refuse())?;
    Duration::try_from(signed).map_err(|_| refuse())
}

/// Prints a duration so that [`parse`] reads it back.
#[must_use]
pub fn print(duration: Duration) -> String {
    SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{}s", duration.as_secs()), |signed| format!("{signed:#}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&print(*duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_durations_are_read_and_printed() {
        for (text, seconds, printed) in [
            ("30s", 30, "30s"),
            ("10m", 600, "10m"),
            ("24h", 86_400, "24h"),
            ("7d", 604_800, "168h"),
            ("1h 30m", 5_400, "1h 30m"),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
            assert_eq!(print(Duration::from_secs(seconds)), printed);
            assert_eq!(parse(printed), Ok(Duration::from_secs(seconds)), "{printed}");
        }
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn what_is_not_a_positive_length_of_time_is_refused() {
        for text in ["", "10", "ten minutes", "-5m", "1 fortnight", "1y", "10 minuts"] {
            assert!(parse(text).is_err_and(|reason| reason.contains("not a duration")), "{text}");
        }
    }
}
