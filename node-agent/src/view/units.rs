//! Numbers as people read them: at most three digits and a unit; `-` for what is not measured.

/// Shown for what is not measured.
pub const UNKNOWN: &str = "-";

fn or_unknown<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// Three digits: `0.42`, `4.2`, `42`, `420`.
fn three_digits(value: f64) -> String {
    if value < 0.995 {
        format!("{value:.2}")
    } else if value < 9.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A number of bytes with a binary prefix: `0`, `512 B`, `3.4 KiB`, `20 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    let mut value = value.max(0.0);
    if value < 0.5 {
        return "0".to_owned();
    }
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 999.5 || unit == "TiB" {
            let digits = if unit == "B" { format!("{value:.0}") } else { three_digits(value) };
            return format!("{digits} {unit}");
        }
        value /= 1024.0;
    }
    String::new()
}

/// A number of bytes that may not be known.
#[must_use]
pub fn size(value: Option<u64>) -> String {
    or_unknown(value, |value| bytes(super::rates::float(value)))
}

/// Bytes per second: `3.4 MiB/s`.
#[must_use]
pub fn byte_rate(value: Option<f64>) -> String {
    or_unknown(value, |value| if value < 0.5 { "0".to_owned() } else { format!("{}/s", bytes(value)) })
}

/// A number per second: `0`, `0.42`, `420`, `12 k`.
#[must_use]
pub fn rate(value: Option<f64>) -> String {
    or_unknown(value, |value| match value {
        ..0.005 => "0".to_owned(),
        0.005..9_999.5 => three_digits(value),
        9_999.5..999_500.0 => format!("{} k", three_digits(value / 1e3)),
        _ => format!("{} M", three_digits(value / 1e6)),
    })
}

/// CPUs: `0.004`, `0.42`, `1.5`, `17`.
#[must_use]
pub fn cpus(value: Option<f64>) -> String {
    or_unknown(value, |value| match value {
        ..0.0005 => "0".to_owned(),
        0.0005..0.0095 => format!("{value:.3}"),
        _ => three_digits(value),
    })
}

/// A share as per cent: `0 %`, `0.4 %`, `42 %`.
#[must_use]
pub fn percent(share: Option<f64>) -> String {
    or_unknown(share, |share| match share * 100.0 {
        ..0.05 => "0 %".to_owned(),
        percent @ 0.05..9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    })
}

/// A length of time in at most two units: `8 s`, `14 min`, `3 h 5 min`, `2 d 3 h`.
#[must_use]
pub fn span(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, 0) => format!("{hours} h"),
        (0, ..) => format!("{hours} h {minutes} min"),
        (_, 0, _) => format!("{days} d"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A number with its noun: `1 port`, `3 ports`.
#[must_use]
pub fn count(number: impl Into<Count>, noun: &str) -> String {
    let Count(number) = number.into();
    if number == 1 {
        format!("1 {noun}")
    } else if noun.ends_with('s') {
        format!("{number} {noun}es")
    } else {
        format!("{number} {noun}s")
    }
}

/// A number of things.
pub struct Count(u64);

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl From<u32> for Count {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

impl From<usize> for Count {
    fn from(number: usize) -> Self {
        Self(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

/// How a process ended: `ok`, `exit 1`, `signal 9`.
#[must_use]
pub fn ending(wait_status: Option<u32>) -> String {
    or_unknown(wait_status, |status| match (status >> 8 & 0xff, status & 0x7f) {
        (0, 0) => "ok".to_owned(),
        (code, 0) => format!("exit {code}"),
        (_, signal) => format!("signal {signal}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_three_digits_and_a_unit() {
        let all = [0.0, 0.4, 812.0, 1023.0, 3_500.0, 20_971_520.0, 5e9, 2e15].map(bytes);
        assert_eq!(all, ["0", "0", "812 B", "1.0 KiB", "3.4 KiB", "20 MiB", "4.7 GiB", "1819 TiB"]);
        assert_eq!(
            [0.0, 0.42, 4.2, 420.0, 12_345.0, 3e6].map(|n| rate(Some(n))),
            ["0", "0.42", "4.2", "420", "12 k", "3.0 M"]
        );
        assert_eq!([0.0, 0.004, 0.42, 0.999, 17.2].map(|n| cpus(Some(n))), ["0", "0.004", "0.42", "1.0", "17"]);
        assert_eq!([0.0, 0.004, 0.42, 1.0].map(|n| percent(Some(n))), ["0 %", "0.4 %", "42 %", "100 %"]);
    }

    #[test]
    fn what_is_not_measured_is_no_zero() {
        assert_eq!([rate(None), cpus(None), percent(None), byte_rate(None), size(None), ending(None)], ["-"; 6]);
    }

    #[test]
    fn a_time_has_two_units_at_most_and_an_ending_is_told_in_words() {
        let s = 1_000_000_000;
        assert_eq!(
            [8 * s, 840 * s, 11_100 * s, 7_200 * s, 183_600 * s].map(span),
            ["8 s", "14 min", "3 h 5 min", "2 h", "2 d 3 h"]
        );
        assert_eq!(
            [count(1_u64, "process"), count(0_usize, "process"), count(2_u32, "port")],
            ["1 process", "0 processes", "2 ports"]
        );
        assert_eq!([0, 256, 9, 139].map(|status| ending(Some(status))), ["ok", "exit 1", "signal 9", "signal 11"]);
    }
}
